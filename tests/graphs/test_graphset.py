import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import graph_lists
from torch_geometric.data import Data

from enfa.graphs import GraphSet, check_graphs
from enfa.graphs.graphset import ranges
from enfa.testing import degenerate_graphs, random_graphs


def _set(edges: list[tuple[int, int]], nodes: int, attr: list[int] | None = None) -> GraphSet:
    graph = Data(x=torch.zeros(nodes, 1), edge_index=torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T)
    if attr is not None:
        graph.edge_attr = torch.tensor(attr)
    return check_graphs([graph])


def test_ranges() -> None:
    assert ranges(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist() == [5, 6, 9, 10, 11]
    assert ranges(np.array([], np.int64), np.array([], np.int64)).tolist() == []


@given(graph_lists([2], [2], directed=True))
def test_edges_by_target_and_by_source(graphs: list[Data]) -> None:
    found = check_graphs(graphs)
    for v in range(found.num_nodes):
        into = slice(found.in_ptr[v], found.in_ptr[v + 1])
        assert (found.dst[into] == v).all() and (found.dst == v).sum() == into.stop - into.start
        out = found.out_edge[found.out_ptr[v] : found.out_ptr[v + 1]]
        assert sorted(out) == np.flatnonzero(found.src == v).tolist()
        assert np.array_equal(found.out_dst[found.out_ptr[v] : found.out_ptr[v + 1]], found.dst[out])
    for g, graph in enumerate(graphs):
        edges = slice(found.edge_ptr[g], found.edge_ptr[g + 1])
        assert edges.stop - edges.start == graph.edge_index.shape[1]
        assert (found.graph[found.dst[edges]] == g).all() and (found.graph[found.src[edges]] == g).all()
        # order leads back to the input: the same edge with the same attributes
        back = found.order[edges] - found.edge_ptr[g]
        index = graph.edge_index.numpy()[:, back] + found.node_ptr[g]
        assert np.array_equal(index, np.stack([found.src[edges], found.dst[edges]]))
        assert found.edge_attr is not None
        assert np.array_equal(found.edge_attr[found.edge_kind[edges]], graph.edge_attr.numpy()[back])


@given(st.data())
def test_partner_is_the_same_edge_the_other_way(data: st.DataObject) -> None:
    found = check_graphs(data.draw(graph_lists([2], [2])))
    edges = np.arange(found.num_edges)
    assert (found.partner >= 0).all()
    assert np.array_equal(found.partner[found.partner], edges)
    assert np.array_equal(found.src[found.partner], found.dst)
    assert np.array_equal(found.partner == edges, found.src == found.dst)


def test_partner_of_parallel_edges_has_the_same_attributes() -> None:
    edges = [(0, 1), (0, 1), (0, 1), (1, 0), (1, 0), (1, 0)]
    found = _set(edges, 2, [7, 8, 9, 9, 7, 8])
    assert np.array_equal(found.edge_kind[found.partner], found.edge_kind)
    assert np.array_equal(found.src[found.partner], found.dst)


def test_partner_has_the_same_attributes_where_some_of_the_parallel_edges_have_none_such() -> None:
    found = _set([(0, 1), (0, 1), (1, 0), (1, 0), (0, 2), (2, 0)], 3, [7, 8, 8, 9, 5, 6])
    kind = found.edge_attr[found.edge_kind][:, 0]
    pairs = sorted(zip(kind.tolist(), kind[found.partner].tolist()))
    assert pairs == [(5, 6), (6, 5), (7, 9), (8, 8), (8, 8), (9, 7)]


@pytest.mark.parametrize(
    ("edges", "alone"),
    [
        ([(0, 1)], [(0, 1)]),
        ([(0, 1), (1, 0), (0, 1)], [(0, 1)]),
        ([(1, 0), (1, 2), (2, 1)], [(1, 0)]),
        ([(0, 0), (0, 1), (1, 0)], []),
    ],
)
def test_an_edge_without_its_reverse_has_no_partner(edges: list, alone: list) -> None:
    found = _set(edges, 3)
    missing = found.partner < 0
    assert list(zip(found.src[missing].tolist(), found.dst[missing].tolist())) == alone


@pytest.mark.parametrize("chosen", [[0], [2, 0], [5, 3, 4], [], [8, 7, 6, 5, 4, 3, 2, 1, 0]])
def test_subset_is_the_set_of_the_subset(chosen: list[int]) -> None:
    graphs = random_graphs(3, 6, seed=1, channels=2, edge_channels=[3], loops=True)
    graphs += degenerate_graphs(2, [3]).values()
    whole = check_graphs(graphs)
    found = whole.subset(chosen)
    if not chosen:
        assert (found.num_graphs, found.num_nodes, found.num_edges) == (0, 0, 0)
        return
    expected = check_graphs([graphs[g] for g in chosen])
    for name in ("node_ptr", "src", "dst", "order", "in_ptr", "edge_ptr", "graph", "out_edge", "out_ptr", "partner"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    assert np.array_equal(found.x[found.node_kind], expected.x[expected.node_kind])
    assert found.edge_attr is not None and expected.edge_attr is not None
    assert np.array_equal(found.edge_attr[found.edge_kind], expected.edge_attr[expected.edge_kind])
