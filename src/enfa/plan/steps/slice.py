"""The plan of some graphs, cut out of the distinct rows of many: from the last step down, what is read is numbered anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from enfa.graphs.graphset import ranges
from enfa.plan.arrays import tensor
from enfa.plan.intern import KeyTable
from enfa.plan.kernels.slice import add_up
from enfa.plan.steps.distinct import StepRows
from enfa.plan.steps.full import edge_tables_of
from enfa.plan.steps.step import Program, Step
from enfa.plan.steps.table import StepPlan, Table
from enfa.plan.table import Links, Sums
from enfa.plan.wanted import Numbers, Wanted, items_of

__all__ = ["StepSlicer", "StepSources"]


class StepSources:
    """What a plan needs beside the rows: where graphs begin, and what kinds stand for."""

    def __init__(self, program: Program, **arrays: Any) -> None:
        self.program = program
        self.node_ptr: np.ndarray = arrays["node_ptr"]
        self.sub_ptr: np.ndarray = arrays["sub_ptr"]
        self.start_feature: np.ndarray = arrays["start_feature"]  # by start kind, row of x
        self.start_graph: np.ndarray = arrays["start_graph"]
        self.x: np.ndarray = arrays["x"]
        self.marks: np.ndarray = arrays["marks"]
        self.limits = arrays["limits"]
        self.root: np.ndarray | None = arrays["root"]  # int64 [S, roots], counted within each graph
        self.edge_attr, self.edge_mark = edge_tables_of(program, arrays["edge_attr"], arrays["edge_marks"])


class _Cut:
    """One plan in the making."""

    def __init__(self, slicer: StepSlicer, graphs: np.ndarray) -> None:
        self.slicer, self.graphs = slicer, graphs
        self.wanted = [Wanted(slicer.numbers(rows.keys)) for rows in slicer.rows]
        self.copies: list[np.ndarray | None] = [None] * len(slicer.rows)
        self.places: list[np.ndarray | None] = [None] * len(slicer.rows)

    def enter(self, number: int, step: Step, rows: StepRows) -> None:
        """The rows that the graphs have, where it is not known from later steps; and those of their nodes and subgraphs."""
        graphs, sources = self.graphs, self.slicer.sources
        if rows.count_ptr is not None and rows.count_row is not None and rows.count is not None:
            where = ranges(rows.count_ptr[graphs], rows.count_ptr[graphs + 1] - rows.count_ptr[graphs])
            new = self.wanted[number].add(rows.count_row[where])
            copies = np.zeros(self.wanted[number].count, np.int64)
            add_up(new, rows.count[where], copies)
            self.copies[number] = copies
        if rows.place is not None:
            if step.kind == "graphs":
                here = graphs
            else:
                ptr = sources.node_ptr if step.kind == "nodes" else sources.sub_ptr
                here = ranges(ptr[graphs], ptr[graphs + 1] - ptr[graphs])
            self.places[number] = self.wanted[number].add(rows.place[here])

    def owns(self, number: int, read: int, keys: KeyTable, same: bool) -> tuple[np.ndarray, np.ndarray]:
        """New numbers of own rows, and where items begin. ``same``: own rows stand for what the rows stand for."""
        own, ptr = self.wanted[read].add_owns(keys, self.wanted[number].rows)
        if same:
            self.hand_down(number, read, own)
        return own, ptr

    def hand_down(self, number: int, read: int, index: np.ndarray) -> None:
        """Rows stand for what those that have them as own rows stand for, all together."""
        if self.copies[read] is None:
            copies = np.zeros(self.wanted[read].count, np.int64)
            add_up(index, self.copies[number], copies)
            self.copies[read] = copies

    def sums(self, keys: KeyTable, rows: np.ndarray, read: Wanted) -> Sums:
        ptr, row, count = items_of(keys, rows)
        return Sums(*map(torch.from_numpy, (ptr, read.replace(row), count)))

    def table(self, number: int, step: Step, rows: StepRows) -> Table:
        self.enter(number, step, rows)
        wanted, keys = self.wanted[number], rows.keys
        table = Table(None, len(self.graphs))
        if step.op == "propagate":
            own, ptr = self.owns(number, step.reads[0], keys, True)
            _, row, kind = items_of(keys, wanted.rows, ptr)
            table.links = Links(*map(torch.from_numpy, (own, ptr, self.wanted[step.reads[0]].replace(row), kind)))
        elif step.op == "join":
            own, ptr = self.owns(number, step.reads[0], keys, True)
            other = self.wanted[step.reads[1]].replace(items_of(keys, wanted.rows, ptr)[1])
            self.hand_down(number, step.reads[1], other)
            table.own, table.other = tensor(own), tensor(other)
        elif step.op in ("spread", "diagonal"):
            table.own = tensor(self.owns(number, step.reads[0], keys, False)[0])
        elif rows.lists is not None:
            lists = Wanted(self.slicer.numbers(rows.lists))
            table.parts = self.sums(keys, wanted.rows, lists)
            table.parts.count.fill_(1)
            table.sums = self.sums(rows.lists, lists.rows, self.wanted[step.reads[0]])
        elif step.op != "start":
            table.sums = self.sums(keys, wanted.rows, self.wanted[step.reads[0]])
        copies = self.copies[number]
        if step.kind != "graphs":
            assert copies is not None and len(copies) == wanted.count
            table.copies, table.total = torch.from_numpy(copies), int(copies.sum())
        if self.places[number] is not None:
            table.place = tensor(self.places[number])  # type: ignore[arg-type]
        return table


class StepSlicer:
    """Cuts plans out of distinct rows. Not thread-safe."""

    def __init__(self, rows: list[StepRows], sources: StepSources, cls: type[StepPlan] = StepPlan) -> None:
        self.rows, self.sources, self.cls = rows, sources, cls
        self._numbers: dict[int, Numbers] = {}

    def numbers(self, table: KeyTable) -> Numbers:
        found = self._numbers.get(id(table))
        if found is None or len(found.number) != len(table):
            found = self._numbers[id(table)] = Numbers(len(table))
        return found

    def _roots(self, graphs: np.ndarray) -> torch.Tensor | None:
        s = self.sources
        if s.root is None:
            return None
        nodes, subs = (ptr[graphs + 1] - ptr[graphs] for ptr in (s.node_ptr, s.sub_ptr))
        local = s.root[ranges(s.sub_ptr[graphs], subs)]
        return tensor(np.where(local < 0, -1, local + np.repeat(np.cumsum(nodes) - nodes, subs)[:, None]))

    def plan(self, graphs: np.ndarray) -> StepPlan:
        """The plan of the chosen graphs, in the given order; each at most once."""
        s, steps, graphs = self.sources, self.sources.program.steps, np.asarray(graphs, np.int64)
        cut = _Cut(self, graphs)
        tables = [cut.table(n, steps[n], self.rows[n]) for n in reversed(range(len(steps)))][::-1]
        start = cut.wanted[0].rows
        own = self.rows[0].keys.own_of(start)
        _, mark, degree = items_of(self.rows[0].keys, start)
        of_graph = None
        if s.program.share == "graph":
            position = np.full(len(s.node_ptr), -1, np.int64)
            position[graphs] = np.arange(len(graphs))
            of_graph = tensor(position[s.start_graph[own]])
        return self.cls(
            kind="distinct", program=s.program, num_graphs=len(graphs),
            x_rows=tensor(s.x[s.start_feature[own]]), feature=torch.arange(len(start)),
            mark_rows=tensor(s.marks), marked=tensor(mark), of_graph=of_graph,
            edge_rows=None if s.edge_attr is None else tensor(s.edge_attr), edge_mark_rows=tensor(s.edge_mark),
            tables=tables,
            num_nodes=int((s.node_ptr[graphs + 1] - s.node_ptr[graphs]).sum()),
            num_subgraphs=int((s.sub_ptr[graphs + 1] - s.sub_ptr[graphs]).sum()),
            degrees=tensor(degree.astype(np.int64)) if steps[0].degrees else None,
            limits=s.limits, root_nodes=self._roots(graphs),
            graph_ids=tensor(graphs),
        )  # fmt: skip
