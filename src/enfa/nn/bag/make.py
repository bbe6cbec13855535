"""graphs -> edits -> the plan of any model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn
from torch_geometric.data import Data

from enfa.edits import Policy
from enfa.edits.check import edits_by
from enfa.graphs import check_graphs
from enfa.graphs.attributes import graph_attributes
from enfa.graphs.labels import labels_of_graphs
from enfa.nn.bag.bag import Bag
from enfa.nn.bag.trace import in_precision_of, trace
from enfa.plan import make as of_specs
from enfa.plan.gradients import connected, needing, numbered
from enfa.plan.spec import Spec
from enfa.plan.steps.make import step_plan_of
from enfa.plan.steps.step import Program
from enfa.plan.table import Plan

__all__ = ["make_bag", "make_plan"]


def make_bag(graphs: Sequence[Data], policy: Policy, model: nn.Module | Program, kind: str = "distinct") -> Bag:
    """The plan of a list of graphs for any model, or for the program of one: what ``model(bag)`` takes.

    Float features are in the precision of the model's parameters; for a program, as they are. Gradients of ``x`` and
    ``edge_attr``, and ``bag.y``: as in :func:`make_plan`.
    """
    of_specs.check_kind(kind)
    checked = check_graphs(graphs)
    y, edits = labels_of_graphs(graphs), edits_by(policy, checked)
    attr = graph_attributes(graphs)
    program = model if isinstance(model, Program) else trace(model, checked, policy, attr)
    names = needing(graphs)
    told = numbered(checked, names)
    bag: Any = step_plan_of(told, edits, program, kind, Bag)
    if "x" in names:
        bag.x_rows = connected([data.x for data in graphs], bag.x_rows)
    if "edge_attr" in names and bag.edge_rows is not None:
        bag.edge_rows = connected([data.edge_attr for data in graphs], bag.edge_rows)
    bag.y, bag.graph_attr = y, attr
    return bag if isinstance(model, Program) else in_precision_of(model, bag)


def make_plan(
    graphs: Sequence[Data], policy: Policy, spec: nn.Module | Spec | Program, kind: str = "distinct"
) -> Plan | Bag:
    """The plan of a list of PyG graphs.

    Args:
        graphs: ``Data`` objects with ``x`` (float features, or int64 categorical columns), ``edge_index`` and,
            where the model reads them, ``edge_attr``.
        policy: what makes the subgraphs, such as ``enfa.NodeMarking()``.
        spec: the model: any module whose forward computes with the verbs of a bag (:class:`enfa.Bag`), which is run once on a
            small graph to see what it asks for (:func:`enfa.trace`), or the program that was seen. Or a DSGNN or DSSGNN, or
            its ``spec``.
        kind: ``"distinct"`` (every distinct row once), ``"ego"`` (ENFA as published) or ``"full"`` (the conventional
            model). All give the same outputs and gradients.

    Where ``x`` or ``edge_attr`` of a graph has ``requires_grad``, gradients flow back into it; rows are then shared
    between subgraphs only. As for anything computed from a tensor, that works once for each plan.

    ``plan.y`` are the graphs' labels, stacked; None where they have none, or none that can be stacked (those of nodes).
    """
    of_model = spec if isinstance(spec, Spec) else getattr(spec, "spec", None)
    if isinstance(spec, (nn.Module, Spec)) and isinstance(of_model, Spec):
        return of_specs.make_plan(graphs, policy, of_model, kind)
    if isinstance(spec, (nn.Module, Program)):
        return make_bag(graphs, policy, spec, kind)
    got = f"the class {spec.__name__}" if isinstance(spec, type) else type(spec).__name__
    got += ": pass plan.spec" if isinstance(spec, Plan) else ": pass plan.program" if isinstance(spec, Bag) else ""
    raise TypeError(f"Expected a model (torch.nn.Module), its spec or its program, got {got}")
