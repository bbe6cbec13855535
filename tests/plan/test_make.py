"""Bad input to ``make_plan`` that no other module's tests hold."""

import pytest
import torch
from programs import layers

import enfa
from enfa.graphs.names import unknown
from enfa.plan.check import KINDS
from enfa.testing import random_graph, random_graphs


@pytest.mark.parametrize(("kind", "hint"), [("distnict", r" \(did you mean 'distinct'\?\)"), ("qq", ""), (None, "")])
def test_unknown_kinds_list_the_known_ones(kind: str, hint: str) -> None:
    message = rf"^Expected the kind of plan to be one of full, ego, distinct, got {kind!r}{hint}$"
    with pytest.raises(ValueError, match=message):
        enfa.make_plan([random_graph(3)], enfa.NodeMarking(), layers(1), kind)


def test_a_kind_is_refused_before_graphs_are_read() -> None:
    with pytest.raises(ValueError, match="kind of plan"):
        enfa.make_plan([], enfa.NodeMarking(), layers(1), "none")


@pytest.mark.parametrize("kind", KINDS)
def test_missing_edge_attributes(kind: str) -> None:
    message = "Expected 'edge_attr' in the graphs, because the model reads edge attributes; graph 0 has none"
    with pytest.raises(ValueError, match=message):
        enfa.make_plan(random_graphs(2), enfa.NodeMarking(), layers(1, edges=True), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_plan_does_not_read_it_does_not_hold(kind: str) -> None:
    graphs = random_graphs(3, 6, edge_channels=2)
    plan = enfa.make_plan(graphs, enfa.NodeMarking(), layers(1), kind)
    assert len(plan.edge_mark_rows) == 1 and plan.degrees is None and plan.of_graph is None and plan.root_nodes is None
    program = layers(1, degrees=True, edges=True, share="graph")
    plan = enfa.make_plan(graphs, enfa.NodeMarking(), program, kind)
    assert plan.edge_rows is not None and plan.degrees is not None and plan.of_graph is not None
    assert plan.kind == kind and plan.program == program
    # degrees are those of the graph under node marking, however the rows were made
    degrees = [torch.bincount(g.edge_index[1], minlength=g.num_nodes) for g in graphs]
    assert torch.equal(plan.degrees.unique(), torch.cat(degrees).unique())


def test_unknown() -> None:
    error = unknown("pet", "dgo", ["cat", "dog"])
    assert str(error) == "Expected pet to be one of cat, dog, got 'dgo' (did you mean 'dog'?)"


def test_what_is_no_list_of_graphs() -> None:
    graphs, model = [random_graph(3)], enfa.DSGNN(3, 4, 2, 1)
    plan = enfa.make_plan(graphs, enfa.NodeMarking(), model)
    for make in (enfa.make_plan, enfa.compile):
        with pytest.raises(TypeError, match=r"^Expected a list of graphs, got Bag$"):
            make(plan, enfa.NodeMarking(), model)
        with pytest.raises(TypeError, match=r"^Expected a list of graphs, got DSGNN$"):
            make(model, enfa.NodeMarking(), model)
