"""graphs -> edits -> the plan of any model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor, nn
from torch_geometric.data import Data

from enfa.edits import Edits, Policy
from enfa.edits.check import edits_by
from enfa.edits.marks import marks_beside
from enfa.edits.own import warn_of_own
from enfa.graphs import GraphSet, check_graphs
from enfa.graphs.attributes import graph_attributes
from enfa.graphs.check import read_once
from enfa.graphs.labels import labels_of_graphs
from enfa.nn.bag.bag import Bag
from enfa.nn.bag.trace import in_precision_of, trace
from enfa.plan.check import check_kind, check_program
from enfa.plan.gradients import connected, needing, numbered
from enfa.plan.make import step_plan_of
from enfa.plan.step import Program

__all__ = ["attached", "make_plan", "program_of"]


def program_of(
    model: nn.Module | Program, graphs: GraphSet, policy: Policy, graph_attr: dict[str, Tensor] | None = None,
    edits: Edits | None = None,
) -> Program:  # fmt: skip
    """What a model asks for, seen by running it once (:func:`enfa.trace`); or the program that was seen."""
    if isinstance(model, Program):
        return model
    if isinstance(model, nn.Module):
        return trace(model, graphs, policy, graph_attr, edits=edits)
    got = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
    got += ": pass plan.program" if isinstance(model, Bag) else ""
    raise TypeError(f"Expected a model (torch.nn.Module), or its program (enfa.trace), got {got}")


def attached(bag: Bag, graphs: Sequence[Data], names: Sequence[str]) -> Bag:
    """A plan of :func:`~enfa.plan.gradients.numbered` graphs with their features, through which gradients flow back."""
    if "x" in names:
        if bag.categories:
            raise ValueError("Expected 'x' without a gradient where 'x_cat' stands beside it, got requires_grad=True")
        bag = replace(bag, x_rows=connected([data.x for data in graphs], bag.x_rows), limits=((), bag.limits[1]))
    if "edge_attr" in names and bag.edge_rows is not None:
        rows = connected([data.edge_attr for data in graphs], bag.edge_rows)
        bag = replace(bag, edge_rows=rows, limits=(bag.limits[0], ()))
    return bag


def make_plan(graphs: Sequence[Data], policy: Policy, model: nn.Module | Program, kind: str = "distinct") -> Bag:
    """The plan of a list of PyG graphs: what ``model(plan)`` takes.

    Args:
        graphs: ``Data`` objects with ``x`` (float features, or int64 categorical columns), ``edge_index`` and,
            where the model reads them, ``edge_attr``.
        policy: what makes the subgraphs, such as ``enfa.NodeMarking()``.
        model: any module whose forward computes with the verbs of a bag (:class:`enfa.Bag`), such as DSGNN or DSSGNN, which is
            run once on a small graph to see what it asks for; or the program that was seen (:func:`enfa.trace`). Float
            features are in the precision of a model's parameters; for a program, as they are.
        kind: ``"distinct"`` (every distinct row once), ``"ego"`` (ENFA as published: what an edit has not reached is a row of
            the unedited graph, and nothing else is shared) or ``"full"`` (the conventional model). All give the same outputs
            and gradients.

    Where ``x`` or ``edge_attr`` of a graph has ``requires_grad``, gradients flow back into it; rows are then shared
    between subgraphs only. As for anything computed from a tensor, that works once for each plan.

    ``plan.y`` are the graphs' labels, stacked; None where they have none, or none that can be stacked (those of nodes).
    """
    check_kind(kind)
    graphs = read_once(graphs)
    checked = check_graphs(graphs)
    y, attr, edits = labels_of_graphs(graphs), graph_attributes(graphs), edits_by(policy, checked)
    program = program_of(model, checked, policy, attr, edits)
    check_program(program, checked, edits, repr(policy))
    warn_of_own(policy, checked, edits)
    names = needing(graphs)
    edits = marks_beside(edits, checked.x) if isinstance(model, Program) else edits
    made: Any = step_plan_of(numbered(checked, names), edits, program, kind, Bag)
    bag = attached(made, graphs, names)
    bag.y, bag.graph_attr = y, attr
    return bag if isinstance(model, Program) else in_precision_of(model, bag)
