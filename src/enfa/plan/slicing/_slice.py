"""Mark, renumber, gather: the part of a table of distinct keys that some rows need.

The tables are much larger than any cache and the rows of a batch lie all over them, so reading them is waiting. The loops
are therefore split (first gather, then number), ask for memory ahead, and have no branch that depends on what was read.
"""

import numpy as np

from enfa.cache import numba_kernel
from enfa.plan.keys._intern import first_half, second_half
from enfa.plan.keys._prefetch import prefetch

__all__ = [
    "add_sums", "add_up", "collect", "descend", "enter_counts", "enter_lists", "enter_runs", "gather", "look_up", "measure",
    "number_of",
]  # fmt: skip

_AHEAD = 64  # keys, or numbers, between asking for memory and reading it
_U = np.uint64  # numba checks signed places for being negative


@numba_kernel(inline="always")
def number_of(row, number, base, found, count):
    """The new number of a row; ``count`` if it is a new one, which is then written where the next may overwrite it."""
    known = np.int64(number[row]) - base
    result = count if known < 0 else known
    number[row] = result + base
    found[_U(count)] = row
    return result


@numba_kernel
def collect(ids, number, base, found, count, result):
    """Number ids in the order in which they are first met; returns how many there are now. ``result`` may be ``ids``.

    ``number[id] - base`` is an id's new number, negative until it is met. ``found``, the ids by new number, has room for one
    more than there can be.
    """
    last = len(ids) - 1
    for i in range(len(ids)):
        prefetch(number, np.int64(ids[min(i + _AHEAD, last)]))
        new = number_of(_U(ids[i]), number, base, found, count)
        count += new == count
        result[i] = new
    return count


@numba_kernel
def enter_counts(graphs, ptr, row, count, number, base, found, so_far, total):
    """:func:`collect` for ``row[ptr[g]:ptr[g+1]]`` of some graphs; their counts are added to ``total``, by new number."""
    last = len(row) - 1
    for g in graphs:
        for k in range(ptr[g], ptr[g + 1]):
            prefetch(number, np.int64(row[_U(min(k + _AHEAD, last))]))
            new = number_of(_U(row[_U(k)]), number, base, found, so_far)
            so_far += new == so_far
            total[_U(new)] += count[_U(k)]
    return so_far


@numba_kernel
def enter_lists(ptr, row, count, weight, number, base, found, so_far, total):
    """:func:`collect` in place for the rows of some lists; their counts, times their list's weight, are added to ``total``."""
    last = len(row) - 1
    for n in range(len(weight)):
        for k in range(ptr[n], ptr[n + 1]):
            prefetch(number, np.int64(row[_U(min(k + _AHEAD, last))]))
            new = number_of(_U(row[_U(k)]), number, base, found, so_far)
            so_far += new == so_far
            row[_U(k)] = new
            total[_U(new)] += weight[n] * count[_U(k)]
    return so_far


@numba_kernel
def enter_runs(begin, end, number, base, found):
    """Number the rows of some runs, one behind the other; ``number``, ``base`` and ``found`` as in :func:`collect`."""
    at = 0
    for k in range(len(begin)):
        for r in range(begin[k], end[k]):
            number[_U(r)] = base + at
            found[_U(at)] = r
            at += 1
    return at


@numba_kernel
def look_up(ids, number, base):
    """Replace ids that have been met by their numbers, up to the first that has not: its place is returned."""
    last = len(ids) - 1
    for i in range(len(ids)):
        prefetch(number, np.int64(ids[min(i + _AHEAD, last)]))
        known = np.int64(number[_U(ids[i])]) - base
        if known < 0:
            return i
        ids[i] = known
    return len(ids)


@numba_kernel
def measure(rows, heads, ptr):
    """``ptr``: where the items of each of some keys begin once they stand one behind the other. Returns how many there are."""
    last = len(rows) - 1
    end = 0
    ptr[0] = 0
    for i in range(len(rows)):
        prefetch(heads, np.int64(rows[min(i + _AHEAD, last)]))
        row = _U(rows[i])
        end += first_half(heads[row + _U(1)]) - first_half(heads[row])
        ptr[i + 1] = end
    return end


@numba_kernel(inline="always")
def head_of(rows, i, last, heads, number):
    """The own number of a key and how many items it has. Those of later keys, and their new numbers, are asked for."""
    prefetch(heads, np.int64(rows[min(i + 2 * _AHEAD, last)]))
    prefetch(number, np.int64(second_half(heads[_U(rows[min(i + _AHEAD, last)])])))
    row = _U(rows[i])
    head = heads[row]
    return _U(second_half(head)), first_half(heads[row + _U(1)]) - first_half(head)


@numba_kernel
def descend(rows, heads, ptr, number, base, found, count, own):
    """:func:`measure`, and :func:`collect` for the keys' own numbers. Returns what both return, :func:`collect` first."""
    last = len(rows) - 1
    end = 0
    ptr[0] = 0
    for i in range(len(rows)):
        own_row, items = head_of(rows, i, last, heads, number)
        end += items
        ptr[i + 1] = end
        new = number_of(own_row, number, base, found, count)
        count += new == count
        own[i] = new
    return count, end


@numba_kernel(inline="always")
def _copy(items, start, a, b, at):
    item = items[_U(start)]
    if b is None:
        a[_U(at)] = item
    else:
        a[_U(at)] = first_half(item)
        b[_U(at)] = second_half(item)


@numba_kernel
def gather(rows, heads, items, ptr, a, b):
    """Both halves of the items of some keys; without ``b``, ``items`` are first halves already. ``ptr``: :func:`measure`.

    ``a`` and ``b`` have four places more than there are items, because four are copied where there are fewer.
    """
    last = len(rows) - 1
    for i in range(len(rows)):
        prefetch(heads, np.int64(rows[min(i + 2 * _AHEAD, last)]))
        prefetch(items, first_half(heads[_U(rows[min(i + _AHEAD, last)])]))
        start = first_half(heads[_U(rows[i])])
        at = np.int64(ptr[i])
        length = ptr[i + 1] - at
        copied = 0
        if start + 4 <= len(items):
            copied = 4
            for k in range(4):
                _copy(items, start + k, a, b, at + k)
        for k in range(copied, length):
            _copy(items, start + k, a, b, at + k)


@numba_kernel
def add_up(index, amount, total):
    """``total[index] += amount``, one after the other."""
    for i in range(len(index)):
        total[_U(index[i])] += amount[i]


@numba_kernel
def add_sums(ptr, row, count, weight, total):
    """``total[row] += count * weight`` with one weight for each list of rows."""
    for n in range(len(ptr) - 1):
        for k in range(ptr[n], ptr[n + 1]):
            total[_U(row[k])] += count[k] * weight[n]
