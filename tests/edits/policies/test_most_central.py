from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import enfa
from enfa.edits.policies.most_central import subgraph_centrality
from enfa.graphs import check_graphs
from enfa.testing import degenerate_graphs, random_graph, random_graphs


def _adjacency(graph: Data) -> torch.Tensor:
    found = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    return found.index_put_((graph.edge_index[1], graph.edge_index[0]), torch.tensor(1.0).double(), accumulate=True)


def _roots(policy: enfa.Policy, graph: Data) -> list[int]:
    root = policy.edits(check_graphs([graph])).root
    assert root is not None
    return root[:, 0].tolist()


@pytest.mark.parametrize("seed", range(4))
def test_the_highest_on_the_diagonal_of_the_exponential(seed: int) -> None:
    graph = random_graph(11, 3.0, seed=seed, loops=seed > 1, parallel=seed > 2)
    right = torch.linalg.matrix_exp(_adjacency(graph)).diagonal()
    found = torch.from_numpy(subgraph_centrality(_adjacency(graph).numpy()))
    torch.testing.assert_close(found / found.max(), right / right.max(), rtol=1e-12, atol=0)
    chosen = right[_roots(enfa.MostCentral(enfa.NodeMarking(), 3), graph)]
    torch.testing.assert_close(chosen.sort(descending=True).values, right.topk(3).values, rtol=1e-12, atol=0)


def test_small_values_keep_their_digits() -> None:
    """A dense component beside a single edge, whose nodes are equal."""
    dense = np.ones((40, 40)) - np.eye(40)
    both = np.zeros((42, 42))
    both[:40, :40], both[40, 41], both[41, 40] = dense, 1.0, 1.0
    value = subgraph_centrality(both)
    assert value[40] == pytest.approx(value[41], rel=1e-12) and 0 < value[40] / value[0] < 1e-14
    assert value[40] / value[0] == pytest.approx(np.cosh(1) * 40 / (np.exp(39) + 39 * np.exp(-1)), rel=1e-12)
    big = np.ones((900, 900))  # exp(900) is beyond float64
    assert subgraph_centrality(big)[0] == pytest.approx(subgraph_centrality(big)[-1])


def test_equal_nodes_go_by_their_numbers() -> None:
    pairs = torch.tensor([[i, (i + 1) % 30] for i in range(30)]).T
    ring = Data(x=torch.ones(30, 1), edge_index=torch.cat([pairs, pairs.flip(0)], 1))
    for shift in (0, 7):  # edges in another order: sums in another order
        ring.edge_index = ring.edge_index.roll(shift, 1)
        assert _roots(enfa.MostCentral(enfa.EgoNets(2), 4), ring) == [0, 1, 2, 3]


def test_bags_that_are_no_larger_stay() -> None:
    policy = enfa.MostCentral(enfa.NodeMarking(), 50)
    for name, graph in degenerate_graphs().items():
        assert _roots(policy, graph) == _roots(enfa.NodeMarking(), graph), name


def test_all_subgraphs_of_a_chosen_root_stay() -> None:
    graph = random_graph(9, 3.0, seed=2)
    chosen = set(_roots(enfa.MostCentral(enfa.NodeMarking(), 2), graph))
    found = _roots(enfa.MostCentral(enfa.NeighborMarking(1), 2), graph)
    assert found == [i for i in _roots(enfa.NeighborMarking(1), graph) if i in chosen] and len(found) > 2


def test_files_and_further_graphs(tmp_path: Path) -> None:
    graphs, policy = random_graphs(5, 8, seed=1), enfa.MostCentral(enfa.NodeMarking(), 3)
    model = enfa.DSGNN(3, 4, 2, 2).double().eval()
    compiled = enfa.compile(graphs[:3], policy, model, progress=False)
    compiled.extend(graphs[3:])
    compiled.save(tmp_path / "plans")
    plan = next(iter(enfa.DataLoader(enfa.load_compiled(tmp_path / "plans"), 5)))
    torch.testing.assert_close(model(plan), model(enfa.make_plan(graphs, policy, model, "full")), rtol=1e-10, atol=1e-10)


def test_refuses_what_has_no_root() -> None:
    graphs = check_graphs(random_graphs(2, 5))
    for policy, got in ((enfa.NodeDeletion(), "no roots"), (enfa.EdgeDeletion(), "two roots each")):
        with pytest.raises(ValueError, match=f"^Expected a policy whose subgraphs have one root each.*got {got}$"):
            enfa.MostCentral(policy, 2).edits(graphs)
    with pytest.raises(TypeError, match=r"^Expected an enfa.Policy to choose from, got 'node_marking'$"):
        enfa.MostCentral("node_marking", 2)  # type: ignore[arg-type]
