"""Mark, renumber, gather: the part of a table of distinct keys that some rows need."""

import numpy as np
from numba import njit

from enfa.plan.kernels.intern import pack, sort_items

__all__ = ["coalesce", "collect", "counting_sort", "forget", "lengths", "pull", "pull_links"]


@njit(cache=True, nogil=True)
def collect(ids, number, found, count, result):
    """Number ids in the order in which they are first met. ``number[id]`` is -1 until then; returns the count."""
    for i in range(len(ids)):
        row = ids[i]
        if number[row] < 0:
            number[row] = count
            found[count] = row
            count += 1
        result[i] = number[row]
    return count


@njit(cache=True, nogil=True)
def forget(found, count, number):
    """Undo :func:`collect` in time proportional to what it found."""
    for i in range(count):
        number[found[i]] = -1


@njit(cache=True, nogil=True)
def lengths(needed, ptr, out_ptr):
    """``out_ptr``: where the items of each of some keys begin once they stand one behind the other."""
    total = 0
    for i in range(len(needed)):
        out_ptr[i] = total
        total += ptr[needed[i] + 1] - ptr[needed[i]]
    out_ptr[len(needed)] = total


@njit(cache=True, nogil=True)
def pull_links(needed, owns, ptr, items, number, found, count, self_row, in_ptr, in_row, in_edge):
    """:func:`pull` and :func:`collect` in one pass, so that each key is fetched from memory once."""
    low = np.int64(0xFFFFFFFF)
    for i in range(len(needed)):
        own = owns[needed[i]]
        if number[own] < 0:
            number[own] = count
            found[count] = own
            count += 1
        self_row[i] = number[own]
        start = ptr[needed[i]]
        at = in_ptr[i]
        for k in range(in_ptr[i + 1] - at):
            item = items[start + k]
            row = item >> np.int64(32)
            if number[row] < 0:
                number[row] = count
                found[count] = row
                count += 1
            in_row[at + k] = number[row]
            in_edge[at + k] = np.int32(item & low)
    return count


@njit(cache=True, nogil=True)
def pull(needed, ptr, items, out_ptr, a, b):
    """The items of some keys, unpacked. ``out_ptr`` is from :func:`lengths`."""
    low = np.int64(0xFFFFFFFF)
    for i in range(len(needed)):
        start = ptr[needed[i]]
        at = out_ptr[i]
        for k in range(out_ptr[i + 1] - at):
            item = items[start + k]
            a[at + k] = item >> np.int64(32)
            b[at + k] = np.int32(item & low)


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
