"""Which rows of a table are wanted, and the numbers that they get."""

import numpy as np

from enfa.plan.keys.intern import KeyTable
from enfa.plan.slicing._slice import collect, descend, enter_runs, gather, look_up, measure

__all__ = ["Numbers", "Wanted", "firsts_of", "items_of", "starts_of"]

_LIMIT = 2**31 - 1


def _check(entries: int) -> None:
    if entries > _LIMIT:
        raise ValueError(f"Expected fewer than 2^31 messages in a plan, got {entries}: plan fewer graphs at a time")


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

    def enter(self, begin: np.ndarray, end: np.ndarray) -> None:
        """Before anything else: the rows of some runs, one run behind the other."""
        self.reserve(int((end - begin).sum()))
        self.count = enter_runs(begin, end, self.numbers.number, self.base, self.found)

    def add(self, ids: np.ndarray) -> np.ndarray:
        """Mark rows as wanted; return their new numbers, int32."""
        self.reserve(len(ids))
        result = np.empty(len(ids), np.int32)
        self.count = collect(ids, self.numbers.number, self.base, self.found, self.count, result)
        return result

    def replace(self, ids: np.ndarray) -> np.ndarray:
        """:meth:`add` in place, for ids most of which are wanted already."""
        known = look_up(ids, self.numbers.number, self.base)
        if known < len(ids):
            self.reserve(len(ids) - known)
            rest = ids[known:]
            self.count = collect(rest, self.numbers.number, self.base, self.found, self.count, rest)
        return ids

    def add_owns(self, table: KeyTable, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mark the own rows of some keys; return their new numbers, and where the keys' items will begin."""
        self.reserve(len(rows))
        own, ptr = np.empty(len(rows), np.int32), np.empty(len(rows) + 1, np.int32)
        known = (self.numbers.number, self.base, self.found, self.count)
        self.count, end = descend(rows, table.heads, ptr, *known, own)
        _check(end)
        return own, ptr

    @property
    def rows(self) -> np.ndarray:
        return self.found[: self.count]


def starts_of(table: KeyTable, rows: np.ndarray) -> np.ndarray:
    """int32: where the items of some rows' keys begin once they stand one behind the other."""
    ptr = np.empty(len(rows) + 1, np.int32)
    _check(measure(rows, table.heads, ptr))
    return ptr


def items_of(
    table: KeyTable, rows: np.ndarray, ptr: np.ndarray | None = None, second: type[np.signedinteger] = np.int32
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``(ptr, a, b)``, int32: the items of some rows' keys, one behind the other. ``ptr``, if it is known already.

    ``second``: another type for ``b``, which must hold all of them.
    """
    ptr = starts_of(table, rows) if ptr is None else ptr
    total = int(ptr[-1])
    a, b = np.empty(total + 4, np.int32), np.empty(total + 4, second)
    gather(rows, table.heads, table.items, ptr, a, b)
    return ptr, a[:total], b[:total]


def firsts_of(table: KeyTable, firsts: np.ndarray, rows: np.ndarray, ptr: np.ndarray) -> np.ndarray:
    """The first halves alone of :func:`items_of`, out of ``firsts``, which is ``table.a``: half the bytes to read."""
    total = int(ptr[-1])
    a = np.empty(total + 4, np.int32)
    gather(rows, table.heads, firsts, ptr, a, None)
    return a[:total]
