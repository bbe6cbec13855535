"""The distinct rows of a model as its pools see them: equal rows have equal numbers, and only they."""

from collections.abc import Sequence

import numpy as np

from enfa.edits import Edits
from enfa.graphs import GraphSet
from enfa.plan.keys.intern import KeyTable, packed
from enfa.plan.reference.loops import check_loops
from enfa.plan.rows.builder import start_kinds
from enfa.plan.rows.distinct import StepRows, Steps
from enfa.plan.rows.pairs import PairRows
from enfa.plan.step import Program, Step

__all__ = ["SeenSteps", "seen_rows"]


class SeenSteps(Steps):
    """Differs from the rows of a plan in its pools.

    A plan may hold the pool of a subgraph as that of its graph and a difference, so that one multiset can have two keys; here
    every pool is the multiset written out. And what a mean or a maximum does not keep is left out of its keys.
    """

    def __init__(self, graphs: GraphSet, edits: Edits, program: Program, kept: Sequence[str | None]) -> None:
        super().__init__(graphs, edits, program, start_kinds(graphs, "dataset")[0], True)
        self.kept = kept

    def placed(self, step: Step, rows: StepRows) -> np.ndarray:
        place, kept = super().placed(step, rows), self.kept[len(self.found)]
        if kept in (None, "sum"):
            return place
        rows.keys, number = as_kept(rows.keys, kept == "mean")
        return number[place]

    def pool(self, pairs: PairRows, rows: StepRows) -> np.ndarray:
        whole = pairs.completed(self.graphs, self.edits)
        return whole.deltas(whole.base, rows.keys)


def as_kept(table: KeyTable, proportions: bool) -> tuple[KeyTable, np.ndarray]:
    """Multisets of (row, count) items up to a factor, or as sets; and the number of each of the table's keys among them."""
    ptr, row, count = table.item_ptr, table.a, table.b.astype(np.int64)
    of_key = np.repeat(np.arange(len(table)), np.diff(ptr))
    first = np.flatnonzero((np.diff(of_key, prepend=-1) != 0) | (np.diff(row, prepend=-1) != 0))  # items of a key are sorted
    of_key, row = of_key[first], row[first]
    ptr = np.searchsorted(of_key, np.arange(len(table) + 1))
    total = np.ones(len(first), np.int64)
    if proportions and len(first):
        total = np.add.reduceat(count, first)
        there = np.flatnonzero(np.diff(ptr))
        total //= np.repeat(np.gcd.reduceat(total, ptr[there]), np.diff(ptr)[there])
    new = KeyTable()
    return new, new.add(table.own, ptr, packed(row, total))


def seen_rows(graphs: GraphSet, edits: Edits, program: Program, kept: Sequence[str | None]) -> list[StepRows]:
    """The rows of every step over these graphs."""
    check_loops(graphs, program)
    steps = SeenSteps(graphs, edits, program, kept)
    for step in program.steps:
        steps.add(step)
    return steps.found
