"""Mark, renumber, gather: the part of a table of distinct keys that some rows need.

The tables are much larger than any cache and the rows of a batch lie all over them, so reading them is waiting. The loops
are therefore split (first gather, then number), ask for memory ahead, and have no branch that depends on what was read.
"""

import numpy as np
from numba import njit

from enfa.plan.kernels.intern import second_half, pack, sort_items, first_half
from enfa.plan.kernels.prefetch import prefetch

__all__ = ["add_sums", "add_up", "coalesce", "collect", "collect_items", "counting_sort", "gather", "unpack"]

_LOW = np.int64(0xFFFFFFFF)
_AHEAD = 32  # keys, or numbers, between asking for memory and reading it
_U = np.uint64  # numba checks signed places for being negative


@njit(cache=True, inline="always")
def _number(row, number, base, found, count):
    """The new number of a row; ``count`` if it is a new one, which is then written where the next may overwrite it."""
    known = np.int64(number[row]) - base
    result = count if known < 0 else known
    number[row] = result + base
    found[_U(count)] = row
    return result


@njit(cache=True, nogil=True)
def collect(ids, number, base, found, count, result):
    """Number ids in the order in which they are first met; returns how many there are now.

    ``number[id] - base`` is an id's new number, negative until it is met. ``found``, the ids by new number, has room for one
    more than there can be.
    """
    last = len(ids) - 1
    for i in range(len(ids)):
        prefetch(number, np.int64(ids[min(i + _AHEAD, last)]))
        result[i] = _number(_U(ids[i]), number, base, found, count)
        count += result[i] == count
    return count


@njit(cache=True, nogil=True)
def collect_items(items, number, base, found, count, result, rest):
    """:func:`collect` for the first halves of items; their second halves go to ``rest``."""
    last = len(items) - 1
    for i in range(len(items)):
        prefetch(number, first_half(items[min(i + _AHEAD, last)]))
        result[i] = _number(_U(items[i]) >> _U(32), number, base, found, count)
        count += result[i] == count
        rest[i] = second_half(items[i])
    return count


@njit(cache=True, nogil=True)
def gather(done, rows, heads, items, own, out_ptr, out):
    """The keys of some rows, one behind the other, from row ``done`` on; returns the first one that ``out`` is too short for.

    ``out`` must have room for four items more than a key has, because four are copied where there are fewer.
    """
    last = len(rows) - 1
    end = out_ptr[done]
    for i in range(done, len(rows)):
        prefetch(heads, np.int64(rows[min(i + 3 * _AHEAD, last)]))
        prefetch(items, first_half(heads[_U(rows[min(i + _AHEAD, last)])]))
        row = _U(rows[i])
        head = heads[row]
        start = first_half(head)
        length = first_half(heads[row + _U(1)]) - start
        if end + length + 4 > len(out):
            return i
        own[i] = second_half(head)
        if start + 4 <= len(items):
            for k in range(4):
                out[_U(end + k)] = items[_U(start + k)]
            for k in range(4, length):
                out[_U(end + k)] = items[_U(start + k)]
        else:
            for k in range(length):
                out[_U(end + k)] = items[_U(start + k)]
        end += length
        out_ptr[i + 1] = end
    return len(rows)


@njit(cache=True, nogil=True)
def unpack(items, a, b):
    """Both halves of items."""
    for i in range(len(items)):
        a[i] = first_half(items[i])
        b[i] = second_half(items[i])


@njit(cache=True, nogil=True)
def add_up(index, amount, total):
    """``total[index] += amount``, one after the other."""
    for i in range(len(index)):
        total[_U(index[i])] += amount[i]


@njit(cache=True, nogil=True)
def add_sums(ptr, row, count, weight, total):
    """``total[row] += count * weight`` with one weight for each list of rows."""
    for n in range(len(ptr) - 1):
        for k in range(ptr[n], ptr[n + 1]):
            total[_U(row[k])] += count[k] * weight[n]


@njit(cache=True, nogil=True)
def counting_sort(index, ptr, entry):
    """For each value of ``index`` the entries that have it, in order. ``ptr`` comes zeroed."""
    for i in range(len(index)):
        ptr[index[i] + 1] += 1
    for v in range(len(ptr) - 1):
        ptr[v + 1] += ptr[v]
    at = ptr[:-1].copy()
    for i in range(len(index)):
        v = index[i]
        entry[at[v]] = i
        at[v] += 1


@njit(cache=True, nogil=True)
def coalesce(ptr, row, count, items, new_ptr, new_row, new_count):
    """Add up equal rows of every list and drop those whose counts cancel. Returns the new length.

    ``items`` is scratch as long as the longest list.
    """
    end = 0
    for n in range(len(ptr) - 1):
        begin, length = ptr[n], ptr[n + 1] - ptr[n]
        for k in range(length):
            items[k] = pack(row[begin + k], count[begin + k])
        sort_items(items, length)
        at = 0
        while at < length:
            r = items[at] >> np.int64(32)
            net = 0
            while at < length and (items[at] >> np.int64(32)) == r:
                net += np.int32(items[at] & np.int64(0xFFFFFFFF))
                at += 1
            if net != 0:
                new_row[end] = r
                new_count[end] = net
                end += 1
        new_ptr[n + 1] = end
    return end
