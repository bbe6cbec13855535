from __future__ import annotations

import pytest
import torch
from programs import layers
from torch_geometric.data import Data
from torch_geometric.utils import k_hop_subgraph

import enfa
from enfa.graphs import check_graphs
from enfa.testing import degenerate_graphs, random_graph

from .conftest import distances_in, written_out

GRAPHS = [random_graph(12, 2.0, seed=1), random_graph(9, 4.0, seed=2, loops=True), degenerate_graphs()["loops"]]


@pytest.mark.parametrize("hops", [0, 1, 2, 9])
@pytest.mark.parametrize("mark", [False, True])
def test_against_pyg(hops, mark):
    for graph in GRAPHS:
        bag = written_out(enfa.EgoNets(hops, mark=mark), graph)
        assert len(bag) == graph.num_nodes
        for root, (nodes, edges) in enumerate(bag):
            inside, index, _, _ = k_hop_subgraph(root, hops, graph.edge_index, num_nodes=graph.num_nodes)
            assert nodes == {v: int(mark and v == root) for v in inside.tolist()}
            assert set(edges) == {tuple(e) for e in index.T.tolist()}


def test_isolate_keeps_outside_nodes_without_edges():
    graph = GRAPHS[0]
    for plain, kept in zip(written_out(enfa.EgoNets(1), graph), written_out(enfa.EgoNets(1, isolate=True), graph)):
        assert kept[1] == plain[1]
        assert set(kept[0]) == set(range(12))


def test_directed_follows_messages_to_the_root():
    path = Data(x=torch.zeros(3, 1), edge_index=torch.tensor([[0, 1], [1, 2]]))
    assert [sorted(nodes) for nodes, _ in written_out(enfa.EgoNets(1), path)] == [[0], [0, 1], [1, 2]]


def test_both_descriptions_occur():
    graphs = check_graphs([random_graph(12, 2.0, seed=1)])
    keeps = enfa.EgoNets(1).edits(graphs).kept
    assert keeps.any() and not enfa.EgoNets(11).edits(graphs).kept.all()


@pytest.mark.parametrize("hops", [0, 1, 2, 3])
def test_never_more_rows_than_the_conventional_model(hops):
    graph = random_graph(200, 2.0, seed=3)
    plans = (enfa.make_plan([graph], enfa.EgoNets(hops), layers(3), kind) for kind in ("full", "distinct"))
    full, distinct = (plan.cost() for plan in plans)
    assert all(d < f for d, f in zip(distinct.rows, full.rows))


def test_refuses_nonsense():
    with pytest.raises(ValueError, match="hops to be an integer >= 0, got -1"):
        enfa.EgoNets(-1)


@pytest.mark.parametrize("hops", [0, 1, 3])
@pytest.mark.parametrize("isolate", [False, True])
def test_distances_to_the_root(hops, isolate):
    for graph in GRAPHS:
        distance = distances_in(graph)
        for root, (nodes, _) in enumerate(written_out(enfa.EgoNets(hops, "distances", isolate), graph)):
            near = {v: int(distance[v, root]) + 1 for v in range(graph.num_nodes) if distance[v, root] <= hops}
            assert nodes == ({v: near.get(v, 0) for v in range(graph.num_nodes)} if isolate else near)
    assert enfa.EgoNets(2, "distances").marks == enfa.NodeMarking(distances=2).marks


def test_refuses_other_marks():
    with pytest.raises(ValueError, match=r"^Expected mark to be False, True or 'distances', got 'distance'$"):
        enfa.EgoNets(1, mark="distance")
