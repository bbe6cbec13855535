"""Policies of one's own."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
import torch
from programs import layers

import enfa
from enfa.edits.edits import Edits
from enfa.testing import assert_same_as_full, random_graph, random_graphs

EXAMPLE = Path(__file__).parents[2] / "examples" / "custom_policy.py"


class Own(enfa.Policy):
    """Yields what it was given, for every graph."""

    edge_marks = ((0.0,), (1.0,))

    def __init__(self, *bag):
        self._bag = bag

    def bag(self, graph):
        return iter(self._bag)


def plan(*bag, nodes=4):
    graph = random_graph(nodes, 3.0, seed=2)
    return enfa.make_plan([random_graph(4, 3.0, seed=1), graph], Own(*bag), layers(2, edges=True))


S = enfa.Subgraph


@pytest.mark.parametrize(
    "bag, message",
    [
        ([S(), S().mark_node(4)], "graph 0 has 4 nodes, but subgraph 1 of its bag edits node 4"),
        ([S().delete_node(-1)], "edits node -1"),
        ([S().delete_edge(99)], "graph 0 has . edges, but subgraph 0 of its bag edits edge 99"),
        ([S().mark_node(1).delete_node(1)], "graph 0: subgraph 0 edits node 1 twice"),
        ([S().mark_edge(0).delete_edge(0)], "graph 0: subgraph 0 edits the edge . -> . twice"),
        ([S().mark_node(1, mark=2)], "DELETE or a mark from 1 to 1 .*got 2"),
        ([S().mark_node(1, mark=0)], "got 0"),
        ([S().delete_node(0).delete_node(1).delete_node(2).delete_node(3).mark_edge(0)], "marks .* and deletes"),
        ([S().keep_nodes([]).mark_edge(0)], "marks the edge .* and deletes node"),
        ([S().keep_nodes([0, 1]).delete_node(1)], "edits node 1, which keep_nodes has decided on"),
        ([S().keep_nodes([0, 1]).mark_node(2)], "edits node 2, which keep_nodes has decided on"),
        ([S().keep_nodes([7])], "edits node 7"),
        ([S().rooted_at(4)], "has node 4 as its root; the graph has 4 nodes"),
        ([S().delete_node(1).rooted_at(1)], "has node 1 as its root, but does not contain it"),
        ([S().keep_nodes([2]).rooted_at(1)], "has node 1 as its root, but does not contain it"),
    ],
)
def test_errors(bag, message):
    with pytest.raises(ValueError, match=message):
        plan(*bag)


@pytest.mark.parametrize("wrong", [1.5, float("nan"), float("inf"), "1", None])
@pytest.mark.parametrize(
    "name, edit",
    [
        ("mark", lambda wrong: S().mark_node(1, wrong)),
        ("mark", lambda wrong: S().mark_edge(1, wrong)),
        ("node", lambda wrong: S().mark_node(wrong)),
        ("node", lambda wrong: S().delete_node(wrong)),
        ("node", lambda wrong: S().keep_nodes([0, wrong])),
        ("node", lambda wrong: S().rooted_at(wrong)),
        ("edge", lambda wrong: S().delete_edge(wrong)),
    ],
)
def test_numbers_are_not_rounded(name, edit, wrong):
    with pytest.raises(ValueError, match=rf"^Expected {name} to be an integer, got {wrong!r}$"):
        edit(wrong)


def test_numbers_may_come_from_arrays():
    one = S().mark_node(torch.tensor(2), 1.0).keep_nodes(np.arange(3)).rooted_at(np.int32(2)).delete_edge(torch.tensor(1))
    assert (one.nodes, one.kept, one.root, one.edges) == ([(2, 1)], [0, 1, 2], (2,), [(1, -1)])
    assert {type(v) for v in (*one.nodes[0], *one.kept, *one.root, *one.edges[0])} == {int}


def test_a_mask_is_no_list_of_nodes():
    """It was read as nodes 0 and 1."""
    mask = np.array([False, False, True])
    for given in (mask, torch.from_numpy(mask), mask.tolist()):
        with pytest.raises(ValueError, match=r"^Expected node to be an integer, got .*: of a mask take the numbers"):
            S().keep_nodes(given)
    with pytest.raises(ValueError, match=r"^Expected node to hold integers, got a mask of true and false"):
        Edits.build(np.ones(3, np.int64), node=(np.ones(3, np.int64), mask, np.ones(3, np.int64)))
    assert S().mark_node(2, True).nodes == [(2, 1)]


def test_what_a_policy_sees_of_a_graph_is_said():
    class Chemist(enfa.Policy):
        def bag(self, graph):
            return [S().mark_node(v) for v in range(graph.num_nodes) if graph.x[v, 0] > 0]

    with pytest.raises(AttributeError, match=r"^Expected a policy to read position, num_nodes or edge_index .*'x'"):
        enfa.make_plan([random_graph(3)], Chemist(), layers(1))


def test_a_policy_may_know_graphs_by_their_positions():
    """When a model is traced, too, for which the smallest graph is taken."""
    asked = []

    class Known(enfa.Policy):
        def bag(self, graph):
            asked.append((graph.position, graph.num_nodes))
            yield S().mark_node((8, 4, 2)[graph.position])

    graphs = [random_graph(size, 2.0, channels=1, seed=1) for size in (9, 5, 3)]
    enfa.make_plan(graphs, Known(), enfa.DSGNN(1, 4, 2, num_layers=1))
    assert set(asked) == {(0, 9), (1, 5), (2, 3)} and len(asked) == 4 + 2 * 3  # which are asked for twice: does it draw?


def test_what_a_subgraph_keeps_and_its_root_are_said_once():
    """The second time replaced the first."""
    with pytest.raises(ValueError, match=r"^Expected keep_nodes once for a subgraph, got it twice"):
        S().keep_nodes([0]).keep_nodes([1])
    with pytest.raises(ValueError, match=r"^Expected rooted_at once for a subgraph, got it twice"):
        S().rooted_at(0).rooted_at(1)


def test_yields_something_else():
    with pytest.raises(TypeError, match=r"Expected bag\(\) to yield Subgraph objects, got 3"):
        plan(3)
    for nothing in (None, S()):  # bag() without yield or return, or with one subgraph instead of several
        found = Own([])
        found.bag = lambda graph, nothing=nothing: nothing
        with pytest.raises(
            TypeError, match=r"graph 0: Expected bag\(\) to yield Subgraph objects, got (NoneType|one alone: yield it)$"
        ):
            enfa.make_plan([random_graph(3)], found, layers(1))
    with pytest.raises(TypeError, match="must define bag"):
        enfa.make_plan([random_graph(3)], enfa.Policy(), layers(1))


class Mixture(enfa.Policy):
    """Every kind of edit, kept and edited subgraphs in one bag."""

    marks = ((0.0, 1.0), (1.0, 0.0), (2.0, 2.0))
    edge_marks = ((0.0,), (1.0,))

    def bag(self, graph):
        for v in range(graph.num_nodes):
            yield S().mark_node(v, 2).rooted_at(v)
            yield S().keep_nodes(range(v, graph.num_nodes)).mark_node(v)
        for e in range(0, graph.edge_index.shape[1], 2):
            yield S().mark_edge(e)
            # an edge may be deleted with its end, or without
            yield S().delete_edge(e).delete_node(int(graph.edge_index[0, e]))
            yield S().keep_nodes(graph.edge_index[:, e]).delete_edge(e)


@pytest.mark.parametrize("context", [None, "dss", "mpnn"])
@pytest.mark.parametrize("readout", ["sum", "mean", "max"])
def test_mixture_is_exact(context, readout):
    torch.set_num_threads(1)
    graphs = random_graphs(4, 6, seed=3, edge_channels=2)
    options = {"edge_channels": 2, "mark_channels": 2, "edge_mark_channels": 1, "readout": readout, "jk": "concat"}
    if context is None:
        model = enfa.DSGNN(3, 4, 2, 2, "gine", **options)
    else:
        model = enfa.DSSGNN(3, 4, 2, 2, "gine", context, **options)
    assert_same_as_full(model, Mixture(), graphs)


def test_example():
    lines = [line for line in EXAMPLE.read_text().splitlines() if line.strip()]
    assert len(lines) < 25
    runpy.run_path(str(EXAMPLE), run_name="__main__")


def test_a_policy_without_marks_marks_nothing():
    class Unmarked(Own):
        marks = torch.zeros(1, 1)

    with pytest.raises(ValueError, match=r"DELETE or a mark \(the policy has none: row 0 of its marks is unmarked\)"):
        enfa.make_plan([random_graph(4, 3.0, seed=1)], Unmarked(S().mark_node(1)), layers(2))
