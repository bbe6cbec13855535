"""Which steps a model asks for: it is run once, on one small graph, and what it asks is noted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch_geometric.data import Data

from enfa.edits import Policy
from enfa.edits.check import check_edits
from enfa.graphs import GraphSet, check_graphs
from enfa.nn.bag.bag import Bag
from enfa.plan.distinct import start_kinds
from enfa.plan.make import check_kind
from enfa.plan.steps.distinct import step_rows_of
from enfa.plan.steps.full import Written, full_step_plan, full_table
from enfa.plan.steps.slice import StepSlicer, StepSources
from enfa.plan.steps.step import Program, Step

__all__ = ["make_bag", "trace"]


class TracingBag(Bag):
    """Writes every subgraph out and makes each table when it is first asked for."""

    written: Written
    dropout: bool

    loopless: bool

    def _step(self, step: Step) -> int:
        if step.op == "start":
            # the rows stay: here every pair has one of its own
            self.program = Program((step, *self.program.steps[1:]))
            self.degrees = torch.bincount(torch.from_numpy(self.written.bag.dst), minlength=len(self.feature)).to(self.device)
            return 0
        if step not in self.program.steps:
            self.tables.append(full_table(self.written, step, [self.program.steps[r] for r in step.reads]))
            self.program = Program((*self.program.steps, step))
            self.cache = {name: value for name, value in self.cache.items() if value is not None}
        return self.program.steps.index(step)

    def note_dropout(self) -> None:
        self.dropout = True

    def note_loops(self) -> None:
        self.loopless = True


def _small(graphs: GraphSet) -> np.ndarray:
    """One graph to trace with: the smallest with an edge, or with a node, or any."""
    nodes, edges = np.diff(graphs.node_ptr), np.diff(graphs.edge_ptr)
    if graphs.num_graphs == 0:
        raise ValueError("Expected at least one graph to trace a model with, got none")
    order = np.lexsort((nodes, nodes < 1, edges < 1))
    return order[:1]


def trace(model: nn.Module, graphs: GraphSet, policy: Policy) -> Program:
    """The steps that a model asks for. It is run in evaluation mode, without gradients, and left as it was."""
    small = graphs.subset(_small(graphs))
    edits = check_edits(small, policy.edits(small), repr(policy))
    bag: Any = full_step_plan(small, edits, Program((Step("start", "pairs"),)), TracingBag)
    bag.written, bag.dropout, bag.loopless = Written(small, edits, True), False, False
    from enfa.plan.expand import edge_tables
    from enfa.plan.full import tensor

    attr, mark = edge_tables(small.edge_attr, edits.edge_marks, bag.written.spec)
    bag.edge_rows, bag.edge_mark_rows = None if attr is None else tensor(attr), tensor(mark)
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    bag = bag if device.type == "cpu" else bag.to(device)
    training = [m for m in model.modules() if m.training]
    model.eval()
    try:
        with torch.no_grad():
            model(_like(bag, model))
    finally:
        for module in training:
            module.training = True
    return Program(bag.program.steps, "graph" if bag.dropout else "dataset", not bag.loopless)


def _like(bag: Bag, model: nn.Module) -> Bag:
    """Float features in the model's own precision."""
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)
    for name in ("x_rows", "mark_rows", "edge_rows", "edge_mark_rows"):
        value = getattr(bag, name)
        if value is not None and value.is_floating_point():
            setattr(bag, name, value.to(dtype))
    return bag


def make_bag(graphs: Sequence[Data], policy: Policy, model: nn.Module | Program, kind: str = "distinct") -> Bag:
    """The plan of a list of graphs for any model, or for the program of one."""
    check_kind(kind)
    checked = check_graphs(graphs)
    program = model if isinstance(model, Program) else trace(model, checked, policy)
    edits = check_edits(checked, policy.edits(checked), repr(policy))
    if kind == "full":
        bag: Any = full_step_plan(checked, edits, program, Bag)
    elif kind == "ego":
        raise ValueError("Expected kind='full' or 'distinct' for a model of one's own, got 'ego', which knows DSGNN and DSSGNN")
    else:
        start, feature, of_graph = start_kinds(checked, program.share)
        sources = StepSources(
            program, node_ptr=checked.node_ptr, sub_ptr=edits.sub_ptr, start_feature=feature, start_graph=of_graph, x=checked.x,
            marks=edits.marks, edge_attr=checked.edge_attr, edge_marks=edits.edge_marks,
        )  # fmt: skip
        rows = step_rows_of(checked, edits, program, start)
        bag = StepSlicer(rows, sources, Bag).plan(np.arange(checked.num_graphs))
    return bag if isinstance(model, Program) else _like(bag, model)
