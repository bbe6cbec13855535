from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import k_hop_subgraph

import enfa
from enfa.graphs import check_graphs
from enfa.testing import degenerate_graphs, random_graph

from .conftest import distances_in, written_out

GRAPHS = [
    random_graph(12, 2.0, seed=1), random_graph(9, 4.0, seed=2, loops=True), random_graph(6, 3.0, seed=3, parallel=True),
    *degenerate_graphs().values(),
]  # fmt: skip


def _neighbors(graph: Data) -> list[tuple[int, int | None]]:
    found: list[tuple[int, int | None]] = []
    for i in range(graph.num_nodes):
        near = sorted({u for u, v in graph.edge_index.T.tolist() if v == i and u != i})
        found += [(i, j) for j in near] or [(i, None)]
    return found


@pytest.mark.parametrize("hops", [1, 2, 9])
@pytest.mark.parametrize("mark", [True, "distances"])
def test_against_pyg(hops: int, mark: bool | str) -> None:
    policy = enfa.NeighborMarking(hops, mark)
    for graph in GRAPHS:
        bag, pairs = written_out(policy, graph), _neighbors(graph)
        if not graph.num_nodes:
            assert bag == [({}, {})]
            continue
        assert len(bag) == len(pairs)
        for (i, j), (nodes, edges) in zip(pairs, bag):
            inside, index, _, _ = k_hop_subgraph(i, hops, graph.edge_index, num_nodes=graph.num_nodes)
            assert set(nodes) == set(inside.tolist()) and set(edges) == {tuple(e) for e in index.T.tolist()}
            part = distances_in(Data(edge_index=index, num_nodes=graph.num_nodes))  # within the ego net
            for v, m in nodes.items():
                if mark is True:
                    expected = [float(v == i), float(v == j)]
                else:
                    far = hops + 2 if j is None else min(int(part[v, j]), hops + 2)
                    of_i, of_j = [0.0] * (hops + 1), [0.0] * (hops + 3)
                    of_i[int(part[v, i])] = of_j[far] = 1.0
                    expected = of_i + of_j
                assert policy.marks[m] == tuple(expected)
    assert policy.mark_channels == (2 if mark is True else 2 * hops + 4)


def test_the_root_is_the_node() -> None:
    graphs = check_graphs(GRAPHS[:1])
    root = enfa.NeighborMarking(1).edits(graphs).root
    assert root is not None and root[:, 0].tolist() == [i for i, _ in _neighbors(GRAPHS[0])]


def test_directed_follows_messages_to_the_root() -> None:
    path = Data(x=torch.zeros(3, 1), edge_index=torch.tensor([[0, 1], [1, 2]]))
    assert [nodes for nodes, _ in written_out(enfa.NeighborMarking(2), path)] == [{0: 1}, {0: 2, 1: 1}, {0: 0, 1: 2, 2: 1}]
    marks = enfa.NeighborMarking(2, "distances").marks  # node 2 cannot reach node 1
    assert [marks[nodes[max(nodes)]][3:] for nodes, _ in written_out(enfa.NeighborMarking(2, "distances"), path)] == [
        (0, 0, 0, 0, 1)
    ] * 3


def test_refuses_nonsense() -> None:
    with pytest.raises(ValueError, match="hops to be an integer >= 1, got 0"):
        enfa.NeighborMarking(0)
    with pytest.raises(ValueError, match=r"^Expected mark to be True or 'distances', got False$"):
        enfa.NeighborMarking(1, mark=False)
