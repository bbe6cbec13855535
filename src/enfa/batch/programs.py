"""A dataset compiled for a model of one's own: slices of it are plans, made of the steps that the model asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from enfa.batch.dataset import SLICING, CompiledDataset
from enfa.batch.rows import in_chunks
from enfa.edits import Edits, Policy, Subsample
from enfa.edits.check import check_edits
from enfa.graphs import GraphSet, check_graphs
from enfa.graphs.labels import labels
from enfa.plan.cost import Cost
from enfa.plan.steps.arrange import arrange_steps
from enfa.plan.steps.check import check_program
from enfa.plan.steps.distinct import StepRows, step_rows_of
from enfa.plan.steps.make import sources_of_steps, step_plan_of
from enfa.plan.steps.merge import merge_steps
from enfa.plan.steps.slice import StepSlicer
from enfa.plan.steps.step import Program
from enfa.plan.steps.table import StepPlan

__all__ = ["CompiledProgram", "compile_program", "in_precision"]


def in_precision(graphs: GraphSet, edits: Edits, dtype: Any) -> tuple[GraphSet, Edits]:
    """With features and marks in the floating-point type of a model."""

    def floats(array: np.ndarray | None) -> Any:
        return array if array is None or array.dtype.kind != "f" else array.astype(dtype)

    return (
        replace(graphs, x=floats(graphs.x), edge_attr=floats(graphs.edge_attr)),
        replace(edits, marks=floats(edits.marks), edge_marks=floats(edits.edge_marks)),
    )


class CompiledProgram:
    """What :func:`enfa.compile` returns for a model of one's own. ``compiled[[3, 5]]`` is the plan of graphs 3 and 5."""

    def __init__(
        self,
        policy: Policy,
        program: Program,
        kind: str,
        slicer: StepSlicer | None,
        graphs: tuple[GraphSet, Edits],
        y: Tensor | None,
        cls: type[StepPlan],
    ) -> None:
        self.policy, self.program, self.kind, self.y = policy, program, kind, y
        self._slicer, self._cls = slicer, cls
        self.sizes = np.diff(graphs[0].node_ptr), np.diff(graphs[1].sub_ptr)
        self._graphs = graphs if slicer is None else None

    def __len__(self) -> int:
        return len(self.sizes[0])

    @property
    def num_subgraphs(self) -> int:
        return int(self.sizes[1].sum())

    positions = CompiledDataset.positions  # type: ignore[assignment]

    def __getitem__(self, graphs: int | Sequence[int] | np.ndarray | Tensor | slice) -> StepPlan:
        """The plan of some graphs, in the given order. A graph may not occur twice."""
        return self.plan(graphs)

    def plan(
        self,
        graphs: int | Sequence[int] | np.ndarray | Tensor | slice,
        draw: Subsample | None = None,
        epoch: int = 0,
        score: np.ndarray | None = None,
    ) -> StepPlan:
        """The plan of some graphs, with their labels. Parts of bags are not drawn here, see :meth:`checked_draw`."""
        if draw is not None:
            self.checked_draw(draw)
        ids = self.positions(graphs)  # type: ignore[misc]
        if self._slicer is not None:
            with SLICING:
                plan = self._slicer.plan(ids)
        else:
            assert self._graphs is not None
            every, edits = self._graphs
            plan = step_plan_of(every.subset(ids), edits.subset(every, ids), self.program, self.kind, self._cls)
            plan.graph_ids = torch.from_numpy(ids)
        if self.y is not None:
            assert plan.graph_ids is not None
            plan.y = self.y.index_select(0, plan.graph_ids)
        return plan

    def checked_draw(self, draw: Subsample) -> Subsample:
        raise ValueError(
            f"Expected no draw for a model of one's own, whose rows may depend on whole bags, got {draw!r}: compile with it as "
            f"the policy"
        )

    def rows_per_graph(self) -> np.ndarray:
        """int64 [G]: at most so many rows each graph alone has in the steps that pass messages, added up."""
        steps = [step for step in self.program.steps if step.op == "propagate"]
        most = self.sizes[0] * self.sizes[1]
        if self._slicer is not None:  # an earlier table has no more rows than a later one, of which it holds the own rows
            counts = [np.diff(rows.count_ptr) for rows in self._slicer.rows if rows.count_ptr is not None]
            most = np.max(counts, axis=0, initial=0)
        return len(steps) * most

    def cost(self) -> Cost:
        """Rows and messages of every step that passes messages, and bytes of the keys in memory."""
        if self._slicer is None:
            return self[:].cost()
        rows, edges, size = [], [], 0
        for step, found in zip(self.program.steps, self._slicer.rows):
            if step.op == "propagate":
                rows.append(len(found.keys))
                edges.append(int(found.keys.size[1]))
            tables = [t for t in (found.keys, found.lists) if t is not None]
            size += sum(8 * (len(t) + 1) + 8 * int(t.size[1]) for t in tables)
            size += sum(a.nbytes for a in (found.place, found.count_ptr, found.count_row, found.count) if a is not None)
        return Cost(rows, edges, size)

    def __repr__(self) -> str:
        steps = "; ".join(map(str, self.program.steps))
        return (
            f"CompiledProgram({self.kind}, {len(self)} graphs, {self.num_subgraphs} subgraphs, {self.policy!r})\n"
            f"  steps: {steps}\n  rows:  {' '.join(map(str, self.cost().rows))}"
        )


def compile_program(
    dataset: Sequence[Data],
    policy: Policy,
    program: Program,
    cls: type[StepPlan],
    progress: bool = True,
    *,
    kind: str = "distinct",
    threads: int | None = None,
    dtype: Any = None,
) -> CompiledProgram:
    """Compile a PyG dataset, or a list of graphs, for one policy and one program.

    ``cls``: what plans are made as; ``dtype``: numpy's floating-point type of features, if not their own.
    """
    graphs = check_graphs(dataset)
    y = labels(dataset)
    edits = check_edits(graphs, policy.edits(graphs), repr(policy))
    check_program(program, graphs, edits, repr(policy))
    if dtype is not None:
        graphs, edits = in_precision(graphs, edits, dtype)
    slicer = None
    if kind == "distinct":
        sources, start = sources_of_steps(graphs, edits, program)

        def make(g: GraphSet, e: Edits, k: np.ndarray) -> list[StepRows]:
            return step_rows_of(g, e, program, k)

        rows: list[StepRows] | None = None
        for found in in_chunks(graphs, edits, start, make, lambda found: sum(len(r.keys) for r in found), progress, threads):
            if rows is None:
                rows = found
            else:
                merge_steps(rows, found, program)
        assert rows is not None
        arrange_steps(rows, program)
        slicer = StepSlicer(rows, sources, cls)
    return CompiledProgram(policy, program, kind, slicer, (graphs, edits), y, cls)
