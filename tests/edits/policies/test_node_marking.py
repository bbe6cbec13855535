from __future__ import annotations

import pytest
from programs import layers

import enfa
from enfa.testing import random_graph

from .conftest import distances_in, written_out


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_labels_are_distances_to_the_root(limit):
    graph = random_graph(11, 2.2, seed=2)
    policy = enfa.NodeMarking(distances=limit)
    away = distances_in(graph)
    assert policy.mark_channels == limit + 2
    for root, (nodes, _) in enumerate(written_out(policy, graph)):
        for v, mark in nodes.items():
            assert policy.marks[mark].index(1.0) == min(int(away[v, root]), limit + 1)
            assert sum(policy.marks[mark]) == 1.0


def test_base_rows_are_far():
    graph = random_graph(6, seed=1)
    plan = enfa.make_plan([graph], enfa.NodeMarking(distances=1), layers(1))
    assert plan.mark_rows[0].tolist() == [0.0, 0.0, 1.0]


def test_refuses_nonsense():
    with pytest.raises(ValueError, match="distances to be an integer >= 0, got -1"):
        enfa.NodeMarking(distances=-1)
