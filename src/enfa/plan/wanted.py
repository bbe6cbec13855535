"""Which rows of a table are wanted, and the numbers that they get."""

from __future__ import annotations

import numpy as np

from enfa.plan.intern import KeyTable
from enfa.plan.kernels.slice import collect, collect_items, gather

__all__ = ["Numbers", "Wanted", "keys_of"]

_LIMIT = 2**31 - 1


class Numbers:
    """One int32 for each row of a table, in which :class:`Wanted` writes numbers.

    Nothing is erased between two plans: the numbers of each begin where those of the one before may have ended, so what is
    smaller is of an earlier one.
    """

    def __init__(self, rows: int) -> None:
        self.number, self.free = np.full(rows, -1, np.int32), 0

    def begin(self) -> int:
        """The first number of the next plan."""
        if self.free + len(self.number) > _LIMIT:
            self.number.fill(-1)
            self.free = 0
        return self.free


class Wanted:
    """The rows wanted of one table so far, by new number."""

    def __init__(self, numbers: Numbers) -> None:
        self.numbers, self.base, self.count = numbers, numbers.begin(), 0
        self.found = np.empty(0, np.int32)

    def reserve(self, more: int) -> None:
        """Make room for so many more rows, as far as the table has them."""
        room = min(self.count + more, len(self.numbers.number))
        if room >= len(self.found):
            found = np.empty(max(room, 2 * self.count) + 1, np.int32)
            found[: self.count] = self.found[: self.count]
            self.found = found
        # before anything is written: a plan that is broken off leaves nothing behind that counts
        self.numbers.free = max(self.numbers.free, self.base + room)

    def add(self, ids: np.ndarray) -> np.ndarray:
        """Mark rows as wanted; return their new numbers, int64."""
        self.reserve(len(ids))
        result = np.empty(len(ids), np.int64)
        self.count = collect(ids, self.numbers.number, self.base, self.found, self.count, result)
        return result

    def add_items(self, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mark the rows that items name; return their new numbers and the items' other halves, both int64."""
        self.reserve(len(items))
        result, rest = np.empty(len(items), np.int64), np.empty(len(items), np.int64)
        self.count = collect_items(items, self.numbers.number, self.base, self.found, self.count, result, rest)
        return result, rest

    @property
    def rows(self) -> np.ndarray:
        return self.found[: self.count]


def keys_of(table: KeyTable, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``(own, ptr, items)`` of some rows of a table, their items one behind the other."""
    own, ptr = np.empty(len(rows), np.int32), np.zeros(len(rows) + 1, np.int64)
    likely = int(table.size[1]) // max(len(table), 1) + 1
    items, done = np.empty(likely * len(rows) + 64, np.int64), 0
    while True:
        done = gather(done, rows, table.heads, table.items, own, ptr, items)
        if done == len(rows):
            return own, ptr, items[: ptr[-1]]
        begin, end = table.heads[rows[done] : rows[done] + 2] >> 32
        longer = np.empty(2 * len(items) + int(end - begin), np.int64)
        longer[: ptr[done]] = items[: ptr[done]]
        items = longer
