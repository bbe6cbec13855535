from collections.abc import Callable, Iterable

import numpy as np
import pytest
from cases import POLICIES
from programs import layers

import enfa
from enfa.edits import DELETE, Edits, GraphView
from enfa.edits.check import check_edits
from enfa.graphs import check_graphs
from enfa.plan.reference.expand import expand
from enfa.testing import degenerate_graphs, random_graph, random_graphs

Bag = Callable[[GraphView], Iterable[enfa.Subgraph]]
S = enfa.Subgraph


class Own(enfa.Policy):
    """Calls a function for graph 1; leaves all others alone."""

    edge_marks = ((0.0,), (1.0,))

    def __init__(self, bag: Bag) -> None:
        self._bag = bag

    def bag(self, graph: GraphView) -> Iterable[enfa.Subgraph]:
        return self._bag(graph) if graph.position == 1 else []


@pytest.mark.parametrize(
    ("bag", "message"),
    [
        (lambda g: [S(), S().mark_node(4)], "graph 1 has 4 nodes, but subgraph 1 of its bag edits node 4"),
        (lambda g: [S().delete_node(-1)], "graph 1 has 4 nodes, but subgraph 0 of its bag edits node -1"),
        (lambda g: [S().delete_edge(99)], r"graph 1 has \d+ edges, but .*edits edge 99"),
        (lambda g: [S().delete_edge(-1)], r"graph 1 has \d+ edges, but .*edits edge -1"),
        (lambda g: [S(), S(), S().mark_node(1).delete_node(1)], "graph 1: subgraph 2 edits node 1 twice"),
        (lambda g: [S().mark_node(1).mark_node(1)], "graph 1: subgraph 0 edits node 1 twice"),
        (lambda g: [S().mark_edge(0).delete_edge(0)], r"graph 1: subgraph 0 edits the edge \d+ -> \d+ twice"),
        (lambda g: [S().mark_node(1, mark=2)], "graph 1.*DELETE or a mark from 1 to 1.*got 2"),
        (lambda g: [S().mark_node(1, mark=0)], "graph 1.*DELETE or a mark from 1 to 1.*got 0"),
        (lambda g: [S().mark_edge(1, mark=-2)], "graph 1.*DELETE or a mark from 1 to 1.*got -2"),
    ],
)
def test_refuses_edits_outside_their_graph_and_contradictions(bag: Bag, message: str) -> None:
    graphs = [random_graph(6, seed=3, edge_channels=1), random_graph(4, 3.0, seed=2, edge_channels=1)]
    with pytest.raises(ValueError, match=message):
        enfa.make_plan(graphs, Own(bag), layers(1, edges=True))


def test_marked_edges_need_a_model_that_reads_them() -> None:
    graphs = [random_graph(4, 3.0, seed=2), random_graph(4, 3.0, seed=2)]
    with pytest.raises(ValueError, match=r"Own\(.*\) marks edges, but the model's conv does not read edge attributes"):
        enfa.make_plan(graphs, Own(lambda g: [S().mark_edge(0)]), layers(1))


def test_a_policy_must_be_one() -> None:
    with pytest.raises(TypeError, match=r"Expected an enfa.Policy such as enfa.NodeMarking\(\), got 'mark'"):
        enfa.make_plan([random_graph(3)], "mark", layers(1))
    with pytest.raises(TypeError, match=r"Policy must define bag\(graph\) or edits\(graphs\)"):
        enfa.make_plan([random_graph(3)], enfa.Policy(), layers(1))


def test_a_policy_sees_edges_in_the_order_of_the_input() -> None:
    graphs = [*random_graphs(3, 7, seed=4, loops=True, parallel=True), random_graph(5, seed=9)]
    seen = {}

    class Look(enfa.Policy):
        def bag(self, graph: GraphView) -> Iterable[enfa.Subgraph]:
            seen[graph.position] = graph
            return []

    enfa.make_plan(graphs, Look(), layers(1))
    for g, graph in enumerate(graphs):
        assert seen[g].num_nodes == graph.num_nodes
        assert np.array_equal(seen[g].edge_index, graph.edge_index.numpy())


def test_policies_are_told_apart_by_their_parameters() -> None:
    assert repr(enfa.NodeDeletion(isolate=True)) == "NodeDeletion(isolate=True)"
    assert enfa.NodeDeletion() == enfa.NodeDeletion(False) != enfa.NodeDeletion(True)
    assert hash(enfa.NodeDeletion()) == hash(enfa.NodeDeletion(False))
    assert enfa.NodeMarking() != enfa.EdgeDeletion()
    assert len({enfa.NodeMarking(), enfa.NodeMarking(), enfa.NodeDeletion()}) == 2


def test_an_empty_bag_becomes_one_unedited_subgraph() -> None:
    one = np.array([1])
    edits = Edits.build(np.array([0, 1, 0]), node=(one, np.array([4]), np.array([DELETE])))
    assert edits.sub_ptr.tolist() == [0, 1, 2, 3]
    assert edits.node_ptr.tolist() == [0, 0, 1, 1]
    assert edits.graph.tolist() == [0, 1, 2]
    assert edits.edge_ptr.tolist() == [0, 0, 0, 0] and len(edits.edge) == 0


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("chosen", [[1], [3, 0], [11, 5, 4, 2]])
def test_subset_is_the_edits_of_the_subset(policy: str, chosen: list[int]) -> None:
    """Written out, because edges may be listed in another order."""
    graphs = random_graphs(3, 6, seed=1, loops=True, parallel=True) + list(degenerate_graphs().values())
    whole = check_graphs(graphs)
    found = expand(whole.subset(chosen), POLICIES[policy].edits(whole).subset(whole, chosen), False)
    part = check_graphs([graphs[g] for g in chosen])
    expected = expand(part, POLICIES[policy].edits(part), False)
    for name in ("sub", "node", "mark", "sub_ptr", "src", "dst"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ["no nodes", "one node"])
def test_bags_may_all_be_empty(policy: str, name: str) -> None:
    graphs = check_graphs(2 * [degenerate_graphs()[name]])
    edits = check_edits(graphs, POLICIES[policy].edits(graphs), policy)
    assert edits.num_subgraphs >= 2
    assert edits.root is None or edits.root.shape[0] == edits.num_subgraphs


def test_numbers_are_not_rounded() -> None:
    one = np.ones(2, np.int64)
    for name, wrong in {
        "subgraphs": {"subgraphs": [1.5, 1]},
        "node": {"node": (one, [0, 1.5], one)},
        "node value": {"node": (one, [0, 1], [1, np.nan])},
        "edge value": {"edge": (one, [0, 1], [1, 0.5])},
        "edge count": {"edge": ([1.5, 1.0], [0, 1], one)},
        "root": {"root": np.array([0.5, 1.0])},
    }.items():
        with pytest.raises(ValueError, match=rf"^Expected {name} to hold integers, got "):
            Edits.build(**{"subgraphs": one, **wrong})
    found = Edits.build(one, node=(np.ones(2), np.array([0.0, 1.0]), np.ones(2)), root=np.array([0.0, 1.0]))
    assert found.node_value.dtype == found.node.dtype == found.node_ptr.dtype == found.root.dtype == np.int64


def test_one_entry_is_not_taken_for_all() -> None:
    two, one = np.ones(2, np.int64), np.ones(1, np.int64)
    wrongs = {"keeps": {"keeps": np.ones(1, bool)}, "root": {"root": one}, "node count": {"node": (one, two, two)}}
    for name, wrong in wrongs.items():
        with pytest.raises(ValueError, match=rf"^Expected {name} for each of 2 subgraphs, got 1$"):
            Edits.build(two, **wrong)  # type: ignore[arg-type]
    for name, scalar in {"keeps": {"keeps": True}, "node count": {"node": (1, two, two)}}.items():
        with pytest.raises(ValueError, match=rf"^Expected {name} for each of 2 subgraphs, got one for all$"):
            Edits.build(two, **scalar)  # type: ignore[arg-type]
