from __future__ import annotations

from dataclasses import fields
from itertools import combinations

import numpy as np
import pytest
from programs import layers

import enfa
from enfa.edits import Edits
from enfa.graphs import check_graphs
from enfa.testing import degenerate_graphs, random_graph, random_graphs

from .conftest import written_out

GRAPHS = [*random_graphs(6, 9, seed=4), *degenerate_graphs().values()]


def test_n_minus_one_is_node_deletion():
    graphs = check_graphs(GRAPHS)
    here, there = enfa.Reconstruction(-1).edits(graphs), enfa.NodeDeletion().edits(graphs)
    for field in fields(Edits):
        if field.name != "keeps":
            assert np.array_equal(getattr(here, field.name), getattr(there, field.name)), field.name
    assert not here.kept.any()
    one = check_graphs([random_graph(7, seed=1)])
    assert np.array_equal(enfa.Reconstruction(6).edits(one).node, enfa.NodeDeletion().edits(one).node)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6])
def test_all_sets_when_few(k):
    graph = random_graph(6, 3.0, seed=2)
    index = {tuple(e) for e in graph.edge_index.T.tolist()}
    bag = written_out(enfa.Reconstruction(k, max_subgraphs=20), graph)
    assert sorted(tuple(sorted(nodes)) for nodes, _ in bag) == list(combinations(range(6), k))
    for nodes, edges in bag:
        assert set(edges) == {e for e in index if set(e) <= set(nodes)}


@pytest.mark.parametrize("k", [2, 5, -2])
@pytest.mark.parametrize("most", [5, 40])
def test_seeded_sample_when_many(k, most):
    graph = random_graph(11, seed=3)
    draws = [written_out(enfa.Reconstruction(k, most, seed), graph) for seed in (0, 0, 1)]
    sets = [[tuple(sorted(nodes)) for nodes, _ in bag] for bag in draws]
    assert len(set(sets[0])) == most == len(sets[0])
    assert sets[0] == sets[1] != sets[2]
    assert all(len(s) == (k if k > 0 else 9) for s in sets[0])


def test_sample_is_uniform_and_does_not_depend_on_the_position():
    graph, other = random_graph(6, seed=5), random_graph(5, seed=6)
    graphs = check_graphs([other, graph, graph])
    edits = enfa.Reconstruction(3, 4).edits(graphs)
    ptr = edits.node_ptr[edits.sub_ptr]
    second, third = edits.node[ptr[1] : ptr[2]], edits.node[ptr[2] : ptr[3]]
    assert np.array_equal(second - 5, third - 11)
    counts = np.zeros(6)
    for seed in range(600):
        for nodes, _ in written_out(enfa.Reconstruction(3, 2, seed), graph):
            counts[list(nodes)] += 1
    assert abs(counts / 600 - 1).max() < 0.12  # each node is in half of 2 sets


@pytest.mark.parametrize("k", [1, 2, 3, 5, 8, -3, -1])
@pytest.mark.parametrize("most", [1, 4, 60])
def test_never_more_rows_than_the_conventional_model(k, most):
    graphs = [random_graph(n, 2.5, seed=n) for n in (8, 12, 15)]
    for program in (layers(3), layers(2, degrees=True)):
        policy = enfa.Reconstruction(k, most)
        full, distinct = (enfa.make_plan(graphs, policy, program, kind).cost() for kind in ("full", "distinct"))
        assert all(d <= f for d, f in zip(distinct.rows, full.rows))
        assert all(d <= f for d, f in zip(distinct.edges, full.edges))


def test_fewer_nodes_than_asked_for():
    bags = [written_out(enfa.Reconstruction(k), random_graph(3, seed=1)) for k in (3, 4, -4)]
    assert all(len(bag) == 1 and len(bag[0][0]) == 3 for bag in bags)


def test_refuses_nonsense():
    with pytest.raises(ValueError, match="k to be an integer other than 0"):
        enfa.Reconstruction(0)
    with pytest.raises(ValueError, match="max_subgraphs"):
        enfa.Reconstruction(2, 0)
