"""A growing table of distinct keys."""

from __future__ import annotations

import numpy as np

from enfa.plan.keys._intern import Keys, hash_keys, join_items, merge, rehash

__all__ = ["KeyTable", "packed"]

_NONE = np.zeros(0, np.int32)


def packed(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Items from their two halves."""
    items = np.empty(len(a), np.int64)
    join_items(a, b, items)
    return items


def _grown(array: np.ndarray, length: int) -> np.ndarray:
    new = np.empty(length, array.dtype)
    new[: len(array)] = array
    return new


class KeyTable:
    """Keys (own, sorted items) in CSR form, numbered in the order in which they were first met.

    An item is a pair of 32-bit numbers ``(a, b)``. What they mean is up to the table: for the rows of a layer
    ``own`` is the row of the same node one table before, ``a`` an incoming row and ``b`` the kind of its edge;
    for a context or a pool ``a`` is a row and ``b`` how often it counts. Without ``shared``, keys may be equal: every key that
    is added is a row of its own.
    """

    def __init__(self, rows: int = 1024, items: int = 4096, shared: bool = True) -> None:
        self.shared = shared
        self.size = np.zeros(2, np.int64)  # rows, items
        self.hashes = np.empty(rows, np.uint64)
        self.heads = np.zeros(rows + 1, np.int64)  # (first item, own); behind the last row (number of items, 0)
        self.items = np.empty(items, np.int64)
        self.slots = self._slots_for(rows)

    def _slots_for(self, rows: int) -> np.ndarray:
        """Empty ones, more than two for every row that there is room for, so that they are at most half full."""
        return np.full(1 << max(4, int(2 * rows + 4).bit_length()) if self.shared else 0, -1, np.int32)

    def __len__(self) -> int:
        return int(self.size[0])

    @property
    def arrays(self) -> Keys:
        """What kernels take."""
        return Keys(self.slots, self.hashes, self.heads, self.items, self.size)

    @property
    def own(self) -> np.ndarray:
        return self.heads[: len(self)].astype(np.int32)  # the low half

    def own_of(self, rows: np.ndarray) -> np.ndarray:
        """int32: ``own`` of some rows."""
        return self.heads[rows].astype(np.int32)

    @property
    def item_ptr(self) -> np.ndarray:
        return self.heads[: len(self) + 1] >> 32

    @property
    def a(self) -> np.ndarray:
        return self.halves()["a"].copy()  # the high half

    @property
    def b(self) -> np.ndarray:
        return self.items[: self.size[1]].astype(np.int32)  # the low half, sign included

    def reserve(self, rows: int, items: int) -> None:
        """Make room for so many more rows and items."""
        if len(self.hashes) < len(self):  # read from arrays, not hashed so far
            self.hashes = np.empty(len(self), np.uint64)
            hash_keys(self.heads, self.items, self.hashes)
        need_rows, need_items = len(self) + rows + 1, int(self.size[1]) + items
        if need_rows > len(self.hashes):
            length = max(need_rows, 2 * len(self.hashes))
            if length >= 2**31:
                raise ValueError(f"Expected fewer than 2^31 distinct rows in a table, got {need_rows}")
            self.hashes, self.heads = _grown(self.hashes, length), _grown(self.heads, length + 1)
            self.slots = self._slots_for(length)
            if self.shared:
                rehash(self.slots, self.hashes, len(self))
        if need_items > len(self.items):
            if need_items >= 2**31:  # a head has 31 bits for where they begin
                raise ValueError(f"Expected fewer than 2^31 items in a table of keys, got up to {need_items}")
            self.items = _grown(self.items, max(need_items, 2 * len(self.items)))

    def add(
        self,
        own: np.ndarray,
        ptr: np.ndarray,
        items: np.ndarray,
        own_map: np.ndarray = _NONE,
        item_map: np.ndarray = _NONE,
    ) -> np.ndarray:
        """Look up many keys, adding those that are new; return their row numbers. Items need not be sorted."""
        self.reserve(len(own), int(ptr[-1]))
        result = np.empty(len(own), np.int32)
        maps = own_map.astype(np.int32), item_map.astype(np.int32)
        merge(own.astype(np.int32), ptr, items, *maps, self.arrays, result)
        return result

    def absorb(self, other: KeyTable, own_map: np.ndarray = _NONE, item_map: np.ndarray = _NONE) -> np.ndarray:
        """Add another table's keys, their numbers translated; return the number here of each of its rows."""
        return self.add(other.own, other.item_ptr, other.items, own_map, item_map)

    def replace_b(self, b: np.ndarray) -> None:
        """Other second halves of all items, in the same order by size. Keys are hashed anew when some are added."""
        self.items, self.hashes = packed(self.a, b), np.empty(0, np.uint64)

    @staticmethod
    def of_size(rows: int, items: int) -> KeyTable:
        """Room for so many keys, which :meth:`halves` fill. It is hashed only when keys are added."""
        table = KeyTable(0, 0)
        table.size, table.heads, table.items = np.array([rows, items]), np.empty(rows + 1, np.int64), np.empty(items, np.int64)
        table.heads[:1], table.heads[-1:] = 0, 0
        return table

    def halves(self) -> dict[str, np.ndarray]:
        """int32, not copied: the halves of what the arrays hold. ``end``: where the items of each key end."""
        heads, items = self.heads.view("<i4").reshape(-1, 2), self.items.view("<i4").reshape(-1, 2)
        rows, count = self.size
        return {"own": heads[:rows, 0], "end": heads[1 : rows + 1, 1], "a": items[:count, 1], "b": items[:count, 0]}

    @staticmethod
    def from_arrays(own: np.ndarray, ptr: np.ndarray, a: np.ndarray, b: np.ndarray) -> KeyTable:
        """A table from what it stored (own, item_ptr, a, b). It is hashed only when keys are added."""
        table = KeyTable(0, 0)
        table.size = np.array([len(own), len(a)])
        table.heads, table.items = packed(ptr, np.append(own, 0)), packed(a, b)
        return table
