"""The plan of some graphs, cut out of the distinct rows of many: from the last step down, what is read is numbered anew.

No hashing, and no work for rows of other graphs: the cost is that of the plan that comes out.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from enfa.edits.edits import chosen_subgraphs
from enfa.graphs.graphset import ranges
from enfa.plan.arrays import tensor
from enfa.plan.expand import largest_value
from enfa.plan.intern import KeyTable
from enfa.plan.kernels.slice import add_sums, add_up, enter_counts
from enfa.plan.order import each_once
from enfa.plan.slicing.held import Held
from enfa.plan.steps.distinct import StepRows
from enfa.plan.steps.full import edge_tables_of
from enfa.plan.steps.lowered import lowered_keys
from enfa.plan.steps.step import Program, Step
from enfa.plan.steps.table import StepPlan, Table
from enfa.plan.table import Links, Sums
from enfa.plan.wanted import Wanted

__all__ = ["Bags", "Making", "StepSlicer", "StepSources"]


class StepSources:
    """What a plan needs beside the rows: where graphs begin, and what kinds stand for."""

    def __init__(self, program: Program, **arrays: Any) -> None:
        self.program, self.arrays = program, arrays
        self.node_ptr: np.ndarray = arrays["node_ptr"]
        self.sub_ptr: np.ndarray = arrays["sub_ptr"]
        self.sub_size: np.ndarray = arrays["sub_size"]  # int64 [S]: nodes of every subgraph
        self.start_feature: np.ndarray = arrays["start_feature"]  # by start kind, row of x
        self.start_graph: np.ndarray = arrays["start_graph"]
        self.x: np.ndarray = arrays["x"]
        self.marks: np.ndarray = arrays["marks"]
        self.root: np.ndarray | None = arrays["root"]  # int64 [S, roots], counted within each graph
        self.limits = largest_value(arrays["x"]), largest_value(arrays["edge_attr"])
        self.edge_attr, self.edge_mark = edge_tables_of(program, arrays["edge_attr"], arrays["edge_marks"])


class Bags:
    """Some graphs and their bags, or parts of these (``subs``): what is counted of each kind, and where it stands."""

    def __init__(self, sources: StepSources, graphs: np.ndarray, subs: np.ndarray | None = None) -> None:
        self.graphs, self.whole, self._node_ptr = graphs, subs is None, sources.node_ptr
        self.sub, self.subs = chosen_subgraphs(sources.sub_ptr, graphs, subs)  # and how many of each graph
        self._nodes = sources.node_ptr[graphs + 1] - sources.node_ptr[graphs]
        pairs = int(sources.sub_size[self.sub].sum())
        self.count = {"pairs": pairs, "nodes": int(self._nodes.sum()), "subgraphs": len(self.sub), "graphs": len(graphs)}

    @cached_property
    def node(self) -> np.ndarray:
        return ranges(self._node_ptr[self.graphs], self._nodes)

    def roots(self, local: np.ndarray | None) -> Tensor | None:
        """int64 [S, roots]: as nodes of the batch."""
        if local is None:
            return None
        first = np.repeat(np.cumsum(self._nodes) - self._nodes, self.subs)[:, None]
        return tensor(np.where(local[self.sub] < 0, -1, local[self.sub] + first))

    def placed(self, kind: str) -> np.ndarray:
        """Numbers in the whole dataset."""
        return {"nodes": lambda: self.node, "subgraphs": lambda: self.sub, "graphs": lambda: self.graphs}[kind]()


class Making:
    """One plan in the making."""

    def __init__(self, slicer: StepSlicer, bags: Bags) -> None:
        self.slicer, self.bags, self.program = slicer, bags, slicer.sources.program
        self.wanted = [slicer.held(rows.keys).wanted() for rows in slicer.rows]
        self.copies: list[np.ndarray | None] = [None] * len(slicer.rows)
        self.lists: defaultdict[int, list[np.ndarray]] = defaultdict(list)  # by step, rows not numbered so far
        self.drawn: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # by step, rows that parts of bags have, and their copies
        self.listings: dict[int, Wanted] = {}  # by pool of pairs

    def enter(self, number: int, table: Table) -> None:
        """The rows that the graphs have, where it is not known from later steps; and those of their nodes and subgraphs."""
        step, rows, wanted, bags = self.program.steps[number], self.slicer.rows[number], self.wanted[number], self.bags
        counted, kind = self.program.counted, self.slicer.copies_type
        if rows.place is not None and step.kind != "graphs":
            place = wanted.add(rows.place[bags.placed(step.kind)])
            table.place = tensor(place)
            if counted:
                self.copies[number] = np.bincount(place, minlength=wanted.count).astype(kind)
        elif counted and rows.count_ptr is not None and step.kind == "pairs":
            if bags.whole:
                graphs = bags.graphs
                wanted.reserve(int((rows.count_ptr[graphs + 1] - rows.count_ptr[graphs]).sum()))
                copies = np.zeros(len(wanted.found), kind)
                known = wanted.numbers.number, wanted.base, wanted.found, wanted.count
                wanted.count = enter_counts(graphs, rows.count_ptr, rows.count_row, rows.count, *known, copies)
            else:
                copies = np.zeros(len(wanted.found) + len(self.drawn[number][0]), kind)
                add_up(wanted.add(self.drawn[number][0]), self.drawn[number][1], copies)
            self.copies[number] = copies[: wanted.count]
        for listed in self.lists.pop(number, []):  # nearly all are wanted by now
            wanted.replace(listed)

    def owns(self, number: int, same: bool) -> tuple[np.ndarray, np.ndarray]:
        """New numbers of own rows, and where items begin. ``same``: own rows stand for what the rows stand for."""
        read, keys = self.program.steps[number].reads[0], self.slicer.rows[number].keys
        own, ptr = self.wanted[read].add_owns(keys, self.wanted[number].rows)
        if same:
            self.hand_down(number, read, own)
        return own, ptr

    def hand_down(self, number: int, read: int, index: np.ndarray) -> None:
        """Rows stand for what those that have them as own rows stand for, all together."""
        above = self.copies[number]
        if above is not None and self.copies[read] is None:
            copies = np.zeros(self.wanted[read].count, above.dtype)
            add_up(index, above, copies)
            self.copies[read] = copies

    def table(self, number: int) -> Table:
        step, rows, slicer = self.program.steps[number], self.slicer.rows[number], self.slicer
        table, held, wanted = Table(None, self.bags.count[step.kind]), slicer.held(rows.keys), self.wanted[number]
        self.enter(number, table)
        if step.op == "propagate":
            table.links = self.links(number, step, held)
        elif step.op == "join":
            own, ptr = self.owns(number, True)
            other = self.wanted[step.reads[1]].replace(held.firsts(wanted.rows, ptr))
            self.hand_down(number, step.reads[1], other)
            table.own, table.other = tensor(own), tensor(other)
        elif step.op in ("spread", "diagonal"):
            table.own = tensor(self.owns(number, False)[0])
        elif rows.lists is not None:
            self.parts(number, table)
            self.pool(number, table, rows.lists)
        elif step.kind == "graphs":
            table.sums = self.graphs(step.reads[0], rows, held)
        elif step.op != "start":
            table.sums = self.sums(step.reads[0], *held.items(wanted.rows))
        if step.kind != "graphs" and self.program.counted:
            copies = self.copies[number]
            assert copies is not None and len(copies) == wanted.count
            table.copies = torch.from_numpy(copies)
        return table

    def links(self, number: int, step: Step, held: Held) -> Links:
        own, ptr = self.owns(number, True)
        rows, read = self.wanted[number].rows, self.wanted[step.reads[0]]
        if step.edges and len(self.slicer.sources.edge_mark) > 1:
            row, kind = held.both(rows, ptr)
            of_kind = torch.from_numpy(kind)
        else:  # all of kind 0
            row = held.firsts(rows, ptr)
            of_kind = self.slicer.zeros(len(row))
        # a row sent is that of a node, which has one in the next table too: nearly all are wanted by now
        return Links(torch.from_numpy(own), torch.from_numpy(ptr), torch.from_numpy(read.replace(row)), of_kind)

    def sums(self, read: int, ptr: np.ndarray, row: np.ndarray, count: np.ndarray) -> Sums:
        """``row``: not numbered so far, which is done in place when all that reads the step is known."""
        self.lists[read].append(row)
        return Sums(*map(torch.from_numpy, (ptr, row, count)))

    def graphs(self, read: int, rows: StepRows, held: Held) -> Sums:
        """Every graph is a row, so that what was pooled need not be gathered."""
        if self.bags.whole:
            assert rows.place is not None
            return self.sums(read, *held.items(rows.place[self.bags.graphs]))
        place = self.slicer.rows[read].place
        assert place is not None
        ptr = np.concatenate([[0], np.cumsum(self.bags.subs)]).astype(np.int32)
        return self.sums(read, ptr, place[self.bags.sub], np.ones(len(self.bags.sub), held.counts))

    def listing(self, pool: int) -> Wanted:
        """The lists of a pool of pairs that are wanted."""
        if pool not in self.listings:
            lists = self.slicer.rows[pool].lists
            assert lists is not None
            self.listings[pool] = self.slicer.held(lists).wanted()
        return self.listings[pool]

    def parts(self, number: int, table: Table) -> None:
        """The lists of each subgraph."""
        ptr, part = self.slicer.held(self.slicer.rows[number].keys).listed(self.wanted[number].rows)
        self.listing(number).replace(part)
        table.parts = Sums(torch.from_numpy(ptr), torch.from_numpy(part), self.slicer.ones(len(part)))

    def pool(self, number: int, table: Table, keys: KeyTable) -> None:
        """The rows of each list, of earlier tables too."""
        lists, read, weight = self.listing(number), self.program.steps[number].reads[0], None
        if not self.bags.whole:
            assert table.place is not None and table.parts is not None
            ptr, part = table.parts.ptr.numpy(), table.parts.row.numpy()
            times, weight = np.bincount(table.place.numpy(), minlength=len(ptr) - 1), np.zeros(lists.count, np.int64)
            add_sums(ptr, part, np.ones_like(part), times, weight)
        table.sums = self.listed(self.slicer.held(keys), lists.rows, read, weight)
        for earlier, of_earlier in self.slicer.lowered(number).items():
            table.cache[f"lowered {earlier}"] = self.listed(self.slicer.held(of_earlier), lists.rows, earlier, weight)

    def listed(self, held: Held, lists: np.ndarray, read: int, weight: np.ndarray | None) -> Sums:
        """Some lists over the rows of a step.

        ``weight``: how many subgraphs of a part of a bag have each. Rows that they add and take away again are left out.
        """
        ptr, row, count = held.items(lists)
        if weight is not None:
            rows = self.slicer.held(self.slicer.rows[read].keys).scratch()
            new = rows.add(row)
            copies = np.zeros(rows.count, np.int64)
            add_sums(ptr, new, count, weight, copies)
            there = copies[new] > 0
            ptr = np.concatenate([[0], np.cumsum(there)])[ptr].astype(np.int32)
            row, count = row[there], count[there]
            self.drawn[read] = rows.rows[copies > 0], copies[copies > 0]
        return self.sums(read, ptr, row, count)


class StepSlicer:
    """Cuts plans out of distinct rows. Not thread-safe."""

    def __init__(self, rows: list[StepRows], sources: StepSources, cls: type[StepPlan] = StepPlan) -> None:
        self.rows, self.sources, self.cls = rows, sources, cls
        # by dataset, not by batch: plans of one dataset differ in nothing but sizes
        self.copies_type = np.int32 if int(sources.sub_size.sum()) < 2**31 else np.int64
        self._held: dict[int, Held] = {}
        self._lowered: dict[int, dict[int, KeyTable]] = {}
        self._zeros, self._ones = torch.zeros(0, dtype=torch.int32), torch.ones(0, dtype=torch.int8)

    def held(self, table: KeyTable) -> Held:
        found = self._held.get(id(table))
        if found is None or found.rows != len(table):
            found = self._held[id(table)] = Held(table)
        return found

    def zeros(self, length: int) -> Tensor:
        """int32: the kinds of edges that are all of one kind, for all plans."""
        if len(self._zeros) < length:
            self._zeros = torch.zeros(2 * length, dtype=torch.int32)
        return self._zeros[:length]

    def ones(self, length: int) -> Tensor:
        """int8: how often each subgraph has its lists, for all plans."""
        if len(self._ones) < length:
            self._ones = torch.ones(2 * length, dtype=torch.int8)
        return self._ones[:length]

    def lowered(self, pool: int) -> dict[int, KeyTable]:
        """The lists of a pool over the earlier tables that the model asks for, made for all graphs when first wanted."""
        if pool not in self._lowered:
            program = self.sources.program
            names = [name.split() for step, name in program.needs if step == pool]
            tables = [int(name[1]) for name in names if name[0] == "lowered"]
            self._lowered[pool] = lowered_keys(self.rows, program, pool, tables)
        return self._lowered[pool]

    def check_draw(self) -> None:
        """Refuse parts of bags where it is not known what the rows of whole bags have to do with theirs."""
        steps, pooled = self.sources.program.steps, set()
        for number, step in enumerate(steps):
            if step.kind == "nodes" or step.along == "subgraphs":
                raise ValueError(
                    f"Expected whole bags, because step {number} ({step.kind}, {step}) reads rows of several subgraphs, got a "
                    f"part of them: compile with ahead=False"
                )
            if step.op == "pool":
                pooled.add(step.reads[0])
        for number, rows in enumerate(self.rows):
            counts = self.sources.program.counted and steps[number].kind == "pairs" and rows.count_ptr is not None
            if counts and number not in pooled:
                raise ValueError(
                    f"Expected whole bags, because the model counts the rows of step {number} ({steps[number]}), which it does "
                    f"not pool, got a part of them: compile with ahead=False"
                )

    def plan(self, graphs: np.ndarray, subs: np.ndarray | None = None) -> StepPlan:
        """The plan of the chosen graphs, in the given order; each at most once.

        ``subs``, if given, restricts their bags to some subgraphs (numbers in the whole dataset, graph by graph in the order
        of ``graphs``), such as a draw of :class:`~enfa.Subsample`.
        """
        if subs is not None:
            self.check_draw()
        bags = Bags(self.sources, np.asarray(graphs, np.int64), subs)
        cut = Making(self, bags)
        tables = [cut.table(number) for number in reversed(range(len(self.rows)))][::-1]
        return self.assembled(bags, cut.wanted[0].rows, tables)

    def assembled(self, bags: Bags, start: np.ndarray, tables: list[Table]) -> StepPlan:
        """A plan from its tables: the rest of it. ``start``: rows wanted of the first."""
        s, keys = self.sources, self.rows[0].keys
        own = keys.own_of(start)
        _, mark, degree = self.held(keys).items(start)
        of_graph = None
        if s.program.share == "graph":
            position = np.full(len(s.node_ptr), -1, np.int64)
            position[bags.graphs] = np.arange(len(bags.graphs))
            of_graph = tensor(position[s.start_graph[own]])
        plan = self.cls(
            kind="distinct", program=s.program, num_graphs=len(bags.graphs),
            x_rows=tensor(s.x[s.start_feature[own]]), feature=torch.arange(len(start)),
            mark_rows=tensor(s.marks), marked=tensor(mark), of_graph=of_graph,
            edge_rows=None if s.edge_attr is None else tensor(s.edge_attr), edge_mark_rows=tensor(s.edge_mark),
            tables=tables, num_nodes=bags.count["nodes"], num_subgraphs=bags.count["subgraphs"],
            degrees=tensor(degree.astype(np.int64)) if s.program.steps[0].degrees else None,
            limits=s.limits, root_nodes=bags.roots(s.root), graph_ids=tensor(bags.graphs),
        )  # fmt: skip
        plan.cache["feature"] = each_once(len(start))  # what ``derive.readers`` would find
        return plan
