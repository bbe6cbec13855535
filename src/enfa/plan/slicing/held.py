"""What slicing keeps beside a table of keys, from plan to plan."""

from functools import cached_property

import numpy as np

from enfa.plan.keys.intern import KeyTable
from enfa.plan.slicing.wanted import Numbers, Wanted, firsts_of, items_of, starts_of

__all__ = ["Held"]


class Held:
    """A table of keys, an int32 of scratch for each of its rows, and one for each item where first halves alone are read."""

    def __init__(self, table: KeyTable) -> None:
        self.table, self.rows = table, len(table)
        self._numbers, self._scratch = Numbers(len(table)), Numbers(0)

    def wanted(self) -> Wanted:
        """No row so far. Of those asked for, the latest holds."""
        return Wanted(self._numbers)

    def scratch(self) -> Wanted:
        """Another one, beside :meth:`wanted`."""
        if len(self._scratch.number) != len(self.table):
            self._scratch = Numbers(len(self.table))
        return Wanted(self._scratch)

    @cached_property
    def counts(self) -> type[np.signedinteger]:
        """What holds second halves: the same for every plan, because plans of one dataset differ in nothing but sizes.

        A byte, nearly always: a sixth less of all that batches hold.
        """
        return np.int8 if np.abs(self.table.b).max(initial=0) < 2**7 else np.int32

    @cached_property
    def _firsts(self) -> np.ndarray:
        return self.table.a

    def items(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``(ptr, row, count)`` of some keys."""
        return items_of(self.table, rows, None, self.counts)

    def both(self, rows: np.ndarray, ptr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both halves, int32, where it is known already where the items of some keys will begin."""
        return items_of(self.table, rows, ptr)[1:]

    def firsts(self, rows: np.ndarray, ptr: np.ndarray) -> np.ndarray:
        """The first halves alone."""
        return firsts_of(self.table, self._firsts, rows, ptr)

    def listed(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the items of some keys begin, and their first halves."""
        ptr = starts_of(self.table, rows)
        return ptr, self.firsts(rows, ptr)
