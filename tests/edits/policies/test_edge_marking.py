from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data

import enfa
from enfa.graphs import check_graphs
from enfa.testing import assert_same_as_full, random_graph

from .conftest import distances_in, written_out


def test_marks_both_directions_of_one_edge():
    graph = random_graph(8, 2.5, seed=1, loops=True)
    index = {tuple(e) for e in graph.edge_index.T.tolist()}
    bag = written_out(enfa.EdgeMarking(), graph)
    assert len(bag) == len({frozenset(e) for e in index})
    marked = [{e for e, mark in edges.items() if mark} for _, edges in bag]
    assert all(pair in ({(a, b), (b, a)} for a, b in index) for pair in marked)
    assert set().union(*marked) == index and all(set(edges) == index for _, edges in bag)


def test_degree_histogram():
    # a star of four leaves with a tail: degrees 4, 1, 1, 1, 2, 1
    index = torch.tensor([[0, 0, 0, 0, 4], [1, 2, 3, 4, 5]])
    graph = Data(x=torch.zeros(6, 1), edge_index=torch.cat([index, index.flip(0)], 1))
    edits = enfa.EdgeMarking("degrees", hops=1, bins=4).edits(check_graphs([graph]))
    first = edits.edge_value[edits.edge_ptr[0] : edits.edge_ptr[1]]  # the edge 0 - 1: all but node 5 are near
    assert first[0] == first[1]
    assert edits.edge_marks[first[0]].tolist() == [1.0, 0.0, 3.0, 1.0, 1.0]
    assert edits.edge_marks[0].tolist() == [0.0] * 5
    assert len({*edits.edge_value.tolist()}) == 3  # three leaves alike, the spoke to 4, and 4 - 5


@pytest.mark.parametrize("hops", [0, 1, 2])
def test_distances(hops):
    graph = random_graph(9, 2.4, seed=5, loops=True)
    policy = enfa.EdgeMarking("distances", hops=hops)
    away = distances_in(graph)
    far = len(policy.marks) - 1
    for nodes, edges in written_out(policy, graph):
        ends = list({v for e, mark in edges.items() if mark for v in e})
        for v, mark in nodes.items():
            near = sorted(int(away[v, e]) for e in (ends * 2)[:2])
            channel = policy.marks[mark].index(1.0)
            assert channel == (far if near[0] > hops else 2 * near[0] + near[1] - near[0])


def test_graphs_without_edge_attributes():
    graphs = [random_graph(6, 2.5, seed=s) for s in (1, 2)]
    model = enfa.DSGNN(3, 4, 2, 2, "gine", edge_mark_channels=1)
    assert_same_as_full(model, enfa.EdgeMarking(), graphs)


def test_a_model_that_cannot_see_the_mark_is_refused():
    graphs = [random_graph(6, 2.5, seed=1, edge_channels=2)]
    for conv in ("gin", "gcn", "graphconv"):
        model = enfa.DSGNN(3, 4, 2, 2, conv)
        with pytest.raises(ValueError, match="marks edges, but the model's conv does not read edge attributes"):
            enfa.make_plan(graphs, enfa.EdgeMarking(), model)
    blind = enfa.DSGNN(3, 4, 2, 2, "gine", edge_channels=2)
    with pytest.raises(ValueError, match="set edge_mark_channels=1"):
        blind(enfa.make_plan(graphs, enfa.EdgeMarking(), blind))


def test_needs_undirected_graphs():
    graph = Data(x=torch.zeros(2, 1), edge_index=torch.tensor([[0], [1]]))
    with pytest.raises(ValueError, match="graph 0 has the edge 0 -> 1 and not its reverse"):
        enfa.EdgeMarking().edits(check_graphs([graph]))


def test_refuses_nonsense():
    with pytest.raises(ValueError, match="did you mean 'degrees'"):
        enfa.EdgeMarking("degree")
    with pytest.raises(ValueError, match="bins to be an integer >= 1"):
        enfa.EdgeMarking("degrees", bins=0)
