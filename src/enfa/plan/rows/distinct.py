"""The distinct rows of any program, over many graphs.

Every table is a table of keys (own row, multiset of (row, number) items), whatever its step: two rows are the same row when
their keys are. What differs between steps is which rows a pair, node or subgraph reads. Pairs are written down as in
:class:`~enfa.plan.rows.pairs.PairRows`, so that a model that does not mix subgraphs never looks at all pairs.
"""

import math
from dataclasses import dataclass

import numpy as np

from enfa.edits import Edits
from enfa.graphs import GraphSet
from enfa.plan.keys.intern import KeyTable, packed
from enfa.plan.reference.loops import check_loops
from enfa.plan.reference.roots import about_nodes, own_subgraphs, rooted, single_roots
from enfa.plan.rows._pairs import count_by_graph
from enfa.plan.rows.builder import Builder
from enfa.plan.rows.pairs import PairRows
from enfa.plan.step import Program, Step

__all__ = ["StepRows", "Steps", "step_rows_of"]


@dataclass
class StepRows:
    """The keys of one step over all graphs, and where each graph finds its rows.

    ``own`` of a key is a row of the first step read; for ``start`` a kind of node, for sums nothing. An item is (row of the
    first step read, edge kind or count), for ``join`` (row of the second, 0), for a pool of pairs (row of ``lists``, 0).
    """

    keys: KeyTable
    lists: KeyTable | None = None  # a pool of pairs: base pools and deltas, (row, count)
    place: np.ndarray | None = None  # int32: the row of every node, subgraph or graph; of pairs, where rows not shared read it
    count_ptr: np.ndarray | None = None  # int64 [G+1]; of pairs, where Program.counted_by says so
    count_row: np.ndarray | None = None  # int32: the rows of each graph, each once
    count: np.ndarray | None = None  # int64: and how often it has them
    affected: int | None = None  # of pairs: how many were looked up because something edited reaches them; not stored


def _depths(program: Program) -> list[int]:
    """For every table of pairs how far from a root of their subgraph the rows are that later steps read; -1: anywhere."""
    depth = [math.inf if program.counted else 0.0] * len(program.steps)
    for number, step in reversed(list(enumerate(program.steps))):
        within = step.op == "propagate" and step.along == "nodes"
        asks = depth[number] + 1 if within else 0 if step.op in ("root", "diagonal") else math.inf
        if number >= len(program.shared):
            asks = math.inf
        for read in step.reads:
            depth[read] = max(depth[read], asks)
    return [-1 if found == math.inf else int(found) for found in depth]


class Steps:
    """Carries what every step's rows are from step to step."""

    def __init__(self, graphs: GraphSet, edits: Edits, program: Program, kind: np.ndarray, shared: bool) -> None:
        self.graphs, self.edits, self.program, self.shared = graphs, edits, program, shared
        self.builder, self.kind = Builder(graphs, edits), kind
        self.pairs: dict[int, PairRows] = {}
        self.whole: PairRows | None = None  # the start with all pairs listed
        self.of: dict[int, np.ndarray] = {}  # the row of every node, subgraph or graph
        self.found: list[StepRows] = []
        self.last = {read: n for n, step in enumerate(program.shared) for read in step.reads}
        self.depth = _depths(program)

    def add(self, step: Step) -> None:
        number, table = len(self.found), KeyTable(shared=self.shared)
        rows = StepRows(table)
        if step.op == "start":
            self.start = self.pairs[number] = self.builder.start(self.kind, step.degrees, table)
        elif step.kind == "pairs":
            self.pairs[number] = self._pairs(step, rows, self.depth[number])
        else:
            self.of[number] = rows.place = self.placed(step, rows)
        self.found.append(rows)
        if step.kind == "pairs":
            rows.affected = int((self.pairs[number].row >= 0).sum())
        if step.kind == "pairs" and number in self.program.handed_on:
            rows.place = self.pairs[number].placed(self.graphs, self.edits)
        elif self.program.counted_by.get(number, number) is None:
            self._count(self.pairs[number], rows)
        for done in (number, *step.reads):  # lists of all pairs: no longer than they are read
            if self.last.get(done, number) == number:
                self.pairs.pop(done, None)

    def _pairs(self, step: Step, rows: StepRows, depth: int) -> PairRows:
        g, e, read = self.graphs, self.edits, step.reads[0]
        if step.op == "join":
            return self.pairs[read].joined(self.pairs[step.reads[1]], rows.keys)
        if step.op == "spread":
            kind, source = self.program.steps[read].kind, self.of[read]
            of_rows = rows.keys.add(source, np.zeros(len(source) + 1, np.int64), np.empty(0, np.int64))
            if kind == "subgraphs":
                self.whole = self.start.completed(g, e) if self.whole is None else self.whole
                return self.whole.of_subgraphs(of_rows)
            return self.start.of_nodes(of_rows if kind == "nodes" else of_rows[g.graph])
        if step.along == "subgraphs":
            edges = self.builder.edge_kinds(step.edges)
            return self.pairs[read].between(g, e, single_roots(g, e), own_subgraphs(g, e), edges, rows.keys)
        return self.builder.over_subgraphs(self.pairs[read], step.edges, rows.keys, depth)

    def placed(self, step: Step, rows: StepRows) -> np.ndarray:
        """The rows of every node, subgraph or graph."""
        g, e, read, table = self.graphs, self.edits, step.reads[0], rows.keys
        kind = self.program.steps[read].kind
        if step.op == "join":
            other = self.of[step.reads[1]]
            return table.add(self.of[read], np.arange(len(other) + 1), packed(other, 0 * other))
        if step.op == "propagate":
            return self.builder.over_graphs(self.of[read], self.builder.edge_kinds(step.edges), table)
        if step.op == "pool":
            if kind == "pairs":
                return self.pool(self.pairs[read], rows)
            if step.kind == "nodes":
                ptr, sub = about_nodes(g, e)
                source = self.of[read][sub]
                return table.add(np.zeros(g.num_nodes, np.int32), ptr, packed(source, np.ones_like(source)))
            owner = g.graph if kind == "nodes" else e.graph
            ptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=g.num_graphs))])
            source = self.of[read]
            return table.add(np.zeros(g.num_graphs, np.int32), ptr, packed(source, np.ones_like(source)))
        pairs = self.pairs[read]
        if step.op == "across":
            return pairs.across(g, e, np.zeros(g.num_nodes, np.int32), table)
        found = pairs.at(self.builder.roots)
        if step.op == "root":
            sub, _ = rooted(e)
            ptr = np.concatenate([[0], np.cumsum(np.bincount(sub, minlength=e.num_subgraphs))])
            there = found[found >= 0]
            return table.add(np.zeros(e.num_subgraphs, np.int32), ptr, packed(there, np.ones_like(there)))
        own = found[own_subgraphs(g, e), 0] if g.num_nodes else np.empty(0, np.int32)
        return table.add(own, np.zeros(len(own) + 1, np.int64), np.empty(0, np.int64))

    def pool(self, pairs: PairRows, rows: StepRows) -> np.ndarray:
        """Of every subgraph the base pool of its graph, where it has one, and a delta."""
        g, e = self.graphs, self.edits
        counts = pairs.unlisted(g, e) > 0
        rows.lists = lists = KeyTable(shared=self.shared)
        ptr = np.concatenate([[0], np.cumsum(counts)])[g.node_ptr]
        base = pairs.base[counts]
        of_graph = lists.add(np.zeros(g.num_graphs, np.int32), ptr, packed(base, np.ones_like(base)))
        result = pairs.deltas(np.where(counts, pairs.base, -1), lists)
        # (base pool, delta); a complete subgraph's delta is its pool
        both = np.stack([of_graph[e.graph], result], 1)
        length = np.where(pairs.complete, 1, 2)
        chosen = both[np.arange(2) >= 2 - length[:, None]]
        return rows.keys.add(
            np.zeros(len(both), np.int32), np.concatenate([[0], np.cumsum(length)]), packed(chosen, np.zeros_like(chosen))
        )

    def _count(self, pairs: PairRows, rows: StepRows) -> None:
        """For a table of which no other has own rows: how often each graph has which row."""
        g, e = self.graphs, self.edits
        room = len(pairs.base) + len(pairs.row)
        ptr, row, count = np.zeros(g.num_graphs + 1, np.int64), np.empty(room, np.int32), np.empty(room, np.int64)
        counts = g.node_ptr, pairs.base, pairs.unlisted(g, e), pairs.ptr[e.sub_ptr], pairs.row
        count_by_graph(*counts, np.full(len(rows.keys), -1, np.int64), ptr, row, count)
        rows.count_ptr, rows.count_row, rows.count = ptr, row[: ptr[-1]].copy(), count[: ptr[-1]].copy()


def step_rows_of(graphs: GraphSet, edits: Edits, program: Program, kind: np.ndarray, shared: bool = True) -> list[StepRows]:
    """The distinct rows of every step. ``kind`` is from :func:`~enfa.plan.rows.builder.start_kinds`.

    Not ``shared``: the rows of ENFA as published (Eq. 3-5). Every pair that reads something edited has a row of its own, and
    where no edit has arrived, pairs have the row of their node in the unedited graph.
    """
    check_loops(graphs, program)
    steps = Steps(graphs, edits, program, kind, shared)
    for step in program.shared:
        steps.add(step)
    return steps.found
