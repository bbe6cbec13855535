"""Looking a key up in a table of distinct keys, adding it where it is new.

A key is one number (``own``) and a list of items, each two 32-bit numbers packed into an int64. Keys live in
CSR form, where the place of a key's first item and its own number, which are read together, are packed into one
int64, too (``heads``); an open-addressing hash table of row numbers stands beside them. A hit is a hit only
when hash, own, length and every item agree, so a collision can never merge two different rows.

Kernels allocate nothing inside their loops: scratch comes from the caller. (Numba 0.68 has been seen to free an array
made inside a loop before its last use.)
"""

from typing import NamedTuple

import numpy as np

from enfa.cache import numba_kernel

__all__ = [
    "Keys", "first_half", "hash_keys", "intern", "join_items", "merge", "pack", "rehash", "renumber", "second_half",
    "sort_items",
]  # fmt: skip

_A, _B, _C = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_LOW = np.int64(0xFFFFFFFF)


class Keys(NamedTuple):
    """The arrays of a :class:`~enfa.plan.keys.intern.KeyTable`."""

    slots: np.ndarray  # int32: a hash table of row numbers, -1 where there is none
    hashes: np.ndarray  # uint64 [room for rows]
    heads: np.ndarray  # int64 [room for rows + 1]
    stored: np.ndarray  # int64 [room for items]
    size: np.ndarray  # int64 [2]: rows and items so far


@numba_kernel(inline="always")
def pack(a, b):
    """Two numbers as one: 0 <= a < 2**31, and b any 32-bit number (negative ones included)."""
    return (np.int64(a) << np.int64(32)) | (np.int64(b) & _LOW)


@numba_kernel(inline="always")
def first_half(head):
    """The first half of what was packed."""
    return head >> np.int64(32)


@numba_kernel(inline="always")
def second_half(head):
    """The second half, its sign included."""
    return np.int32(head & _LOW)


@numba_kernel
def _hash(own, items, count):
    h = np.uint64(own) * _A + np.uint64(count)
    for i in range(count):
        h = (h ^ np.uint64(items[i])) * _B
        h ^= h >> np.uint64(29)
    h = (h ^ (h >> np.uint64(32))) * _C
    return h ^ (h >> np.uint64(29))


@numba_kernel
def _sift(items, root, count):
    value = items[root]
    while True:
        child = 2 * root + 1
        if child >= count:
            break
        if child + 1 < count and items[child + 1] > items[child]:
            child += 1
        if items[child] <= value:
            break
        items[root] = items[child]
        root = child
    items[root] = value


@numba_kernel
def sort_items(items, count):
    """Sort the first ``count`` items in place: by insertion where they are few or nearly sorted, else as a heap."""
    moves = 64 * 64 + 8 * count
    for i in range(1, count):
        value = items[i]
        j = i - 1
        while j >= 0 and items[j] > value:
            items[j + 1] = items[j]
            j -= 1
        items[j + 1] = value
        moves -= i - 1 - j
        if moves < 0:
            break
    else:
        return
    for root in range(count // 2 - 1, -1, -1):
        _sift(items, root, count)
    for end in range(count - 1, 0, -1):
        items[0], items[end] = items[end], items[0]
        _sift(items, np.int64(0), end)  # no literal, for which numba would compile it once more


@numba_kernel
def intern(own, items, count, keys: Keys):
    """The row number of a key, which is added where it is new; the caller has made room for one more.

    Without slots no key is found, so every one is new.
    """
    slots, hashes, heads, stored, size = keys
    h = _hash(own, items, count)
    mask = np.uint64(len(slots) - 1)
    at = h & mask
    while len(slots) > 0:
        row = slots[at]
        if row < 0:
            slots[at] = size[0]
            break
        if hashes[row] == h and second_half(heads[row]) == own:
            start = first_half(heads[row])
            if first_half(heads[row + 1]) - start == count:
                same = True
                for i in range(count):
                    if stored[start + i] != items[i]:
                        same = False
                        break
                if same:
                    return row
        at = (at + np.uint64(1)) & mask
    row = size[0]
    end = size[1]
    hashes[row] = h
    heads[row] = pack(end, own)
    for i in range(count):
        stored[end + i] = items[i]
    size[0] = row + 1
    size[1] = end + count
    heads[row + 1] = pack(end + count, 0)
    return row


@numba_kernel
def hash_keys(heads, stored, hashes):
    """The hash of every key of a table."""
    for row in range(len(hashes)):
        start, end = first_half(heads[row]), first_half(heads[row + 1])
        hashes[row] = _hash(second_half(heads[row]), stored[start:end], end - start)


@numba_kernel
def rehash(slots, hashes, rows):
    """Fill an empty, larger slot array with the rows there are."""
    mask = np.uint64(len(slots) - 1)
    for row in range(rows):
        at = hashes[row] & mask
        while slots[at] >= 0:
            at = (at + np.uint64(1)) & mask
        slots[at] = row


@numba_kernel
def merge(owns_from, ptr_from, items_from, own_map, item_map, keys: Keys, result):
    """Intern every key of another table, its numbers translated first. ``result[row]`` is the new number.

    An empty map leaves the numbers as they are. Items are sorted again, because their order may change.
    """
    longest = 0
    for row in range(len(owns_from)):
        longest = max(longest, ptr_from[row + 1] - ptr_from[row])
    items = np.empty(longest, np.int64)
    for row in range(len(owns_from)):
        count = 0
        for p in range(ptr_from[row], ptr_from[row + 1]):
            item = items_from[p]
            if len(item_map) > 0:
                item = (np.int64(item_map[item >> np.int64(32)]) << np.int64(32)) | (item & _LOW)
            items[count] = item
            count += 1
        sort_items(items, count)
        own = owns_from[row]
        if len(own_map) > 0:
            own = own_map[own]
        result[row] = intern(np.int64(own), items, count, keys)


@numba_kernel
def join_items(a, b, out):
    """Items of a key table from their two halves."""
    for i in range(len(a)):
        out[i] = (int(a[i]) << 32) | (int(b[i]) & 0xFFFFFFFF)


@numba_kernel
def renumber(own, ptr, items, own_number, item_number, heads):
    """Translate keys in place, sort their items anew, and pack their heads. An empty map leaves numbers as they are."""
    for i in range(len(own)):
        heads[i] = pack(ptr[i], own_number[own[i]] if len(own_number) else own[i])
        if len(item_number):
            for k in range(ptr[i], ptr[i + 1]):
                items[k] = pack(item_number[first_half(items[k])], second_half(items[k]))
            sort_items(items[ptr[i] : ptr[i + 1]], ptr[i + 1] - ptr[i])
    heads[len(own)] = pack(ptr[len(own)], 0)
