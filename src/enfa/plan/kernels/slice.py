"""Mark, renumber, gather: the part of a table of distinct keys that some rows need."""

import numpy as np
from numba import njit

__all__ = ["collect", "forget", "pull"]


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
def pull(needed, ptr, items, out_ptr, a, b):
    """The items of some keys, unpacked. ``out_ptr`` has been summed up by the caller."""
    low = np.int64(0xFFFFFFFF)
    for i in range(len(needed)):
        start = ptr[needed[i]]
        at = out_ptr[i]
        for k in range(out_ptr[i + 1] - at):
            item = items[start + k]
            a[at + k] = item >> np.int64(32)
            b[at + k] = np.int32(item & low)
