import pytest
import torch
from programs import layers
from subgraphs import undirected
from torch_geometric.data import Data

import enfa
from enfa.graphs import check_graphs
from enfa.plan.reference.expand import expand
from enfa.testing import degenerate_graphs


def test_takes_parallel_edges_one_at_a_time() -> None:
    graph = degenerate_graphs(1)["parallel edges"]
    assert len(undirected(graph)) == 3
    assert enfa.make_plan([graph], enfa.EdgeDeletion(), layers(1)).num_subgraphs == 3


def test_pairs_parallel_edges_by_their_attributes() -> None:
    """0 = 1 twice, once with attribute 5 and once with 6: each subgraph keeps one attribute in both directions."""
    index = torch.tensor([[0, 0, 1, 1], [1, 1, 0, 0]])
    graph = Data(x=torch.zeros(2, 1), edge_index=index, edge_attr=torch.tensor([5, 6, 6, 5]))
    graphs = check_graphs([graph])
    found = expand(graphs, enfa.EdgeDeletion().edits(graphs), True)
    kept = [sorted(found.kind[found.sub[found.dst] == s].tolist()) for s in (0, 1)]
    assert [k[0] == k[1] for k in kept] == [True, True] and kept[0] != kept[1]


@pytest.mark.parametrize(
    "edges", [[(0, 1)], [(0, 1), (1, 0), (1, 2)], [(0, 1), (0, 1), (1, 0)]], ids=["one way", "mixed", "parallel"]
)
def test_needs_undirected_graphs(edges: list[tuple[int, int]]) -> None:
    good = degenerate_graphs(1)["star"]
    bad = Data(x=torch.zeros(3, 1), edge_index=torch.tensor(edges).T)
    message = r"EdgeDeletion\(\) needs undirected graphs, but graph 1 has the edge \d -> \d and not its reverse"
    with pytest.raises(ValueError, match=message):
        enfa.make_plan([good, bad], enfa.EdgeDeletion(), layers(1))


def test_a_graph_without_edges_is_its_own_bag() -> None:
    plan = enfa.make_plan([degenerate_graphs(1)["no edges"]], enfa.EdgeDeletion(), layers(1), "full")
    assert (plan.num_subgraphs, plan.num_pairs) == (1, 3)
