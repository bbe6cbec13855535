"""Lists of rows transposed, from "what each sum reads" to "which sums read each row", and cut into even pieces."""

import numpy as np

from enfa.cache import numba_kernel

__all__ = ["add_up", "merge_own", "split_long", "spread", "transpose"]

_BLOCK = 64  # lists that are looked at together, because few are long
_U = np.uint64  # numba checks signed places for being negative


@numba_kernel
def spread(ptr, of):
    """The list of each entry. ``of`` has eight places more than there are entries, because eight are written at once."""
    for n in range(len(ptr) - 1):
        begin = np.int64(ptr[n])
        for k in range(8):
            of[_U(begin + k)] = n
        for k in range(begin + 8, ptr[n + 1]):
            of[_U(k)] = n


@numba_kernel
def transpose(of, index, weight, other, new_ptr, new_index, new_weight, new_other):
    """For every value of ``index`` the lists ``of`` its entries, in order, with what each entry carries, if anything.

    ``new_ptr`` comes zeroed. While entries are placed it holds where the next of each value goes: in the end, its end.
    """
    for k in range(len(index)):
        new_ptr[_U(index[k] + 1)] += 1
    for v in range(1, len(new_ptr)):
        new_ptr[v] += new_ptr[v - 1]
    for k in range(len(index)):
        v = _U(index[k])
        place = new_ptr[v]
        new_ptr[v] = place + 1
        new_index[_U(place)] = of[k]
        if weight is not None:
            new_weight[_U(place)] = weight[k]
        if other is not None:
            new_other[_U(place)] = other[k]
    for v in range(len(new_ptr) - 1, 0, -1):
        new_ptr[v] = new_ptr[v - 1]
    new_ptr[0] = 0


@numba_kernel
def add_up(own, ptr, row, count, place, net_row, net, new_ptr, new_row, new_count):
    """Lists of the rows' ``own`` rows, equal ones added up, without those whose counts cancel. Returns the new length.

    ``place``, -1 for every own row, ``net_row`` and ``net``, as long as ``row``, are scratch: where a row met in this list
    has its count. ``new_row`` and ``new_count`` are one longer. Rows stay in order; no branch depends on what is read.
    """
    met = end = 0
    for n in range(len(ptr) - 1):
        begin = met
        for k in range(ptr[n], ptr[n + 1]):
            r = _U(own[_U(row[k])])
            known = np.int64(place[r])
            fresh = known < begin
            at = met if fresh else known
            place[r] = at
            before = net[_U(at)]
            net_row[_U(at)] = r
            net[_U(at)] = count[k] + (np.int32(0) if fresh else before)
            met += fresh
        for k in range(begin, met):
            total = net[k]
            new_row[_U(end)] = net_row[k]
            new_count[_U(end)] = total
            end += total != 0
        new_ptr[n + 1] = end
    return end


@numba_kernel
def split_long(ptr, chunk, first, extra, long):
    """Pieces of at most ``chunk`` entries of what each list has behind its first ``first`` entries.

    Lists without any are left out of ``long``, unless ``first`` is 0: then every list has its place there.

    ``extra`` [3, pieces] gets where each begins and ends and of which list it is, ``long`` [3, lists] the list, its
    first piece and the piece behind its last. Returns the numbers of pieces and of lists; -1 where there is no room.
    """
    pieces = 0
    lists = 0
    for start in range(0, len(ptr) - 1, _BLOCK):
        stop = min(start + _BLOCK, len(ptr) - 1)
        longest = 0
        for n in range(start, stop):
            longest = max(longest, ptr[_U(n + 1)] - ptr[_U(n)])
        if longest <= first and first > 0:
            continue
        for n in range(start, stop):
            begin, end = ptr[n] + first, ptr[n + 1]
            if begin >= end and first > 0:
                continue
            if lists == long.shape[1] or pieces + (end - begin + chunk - 1) // chunk > extra.shape[1]:
                return -1, -1
            long[0, lists] = n
            long[1, lists] = pieces
            while begin < end:
                extra[0, pieces] = begin
                begin = min(begin + chunk, end)
                extra[1, pieces] = begin
                extra[2, pieces] = n
                pieces += 1
            long[2, lists] = pieces
            lists += 1
    return pieces, lists


@numba_kernel
def merge_own(own, in_ptr, in_row, in_edge, ptr, index, kind):
    """Every row's own row, with kind -1, in front of its incoming rows. Without ``kind``, kinds are not written.

    Four rows are copied where there are fewer, as long as there is room: that is what most have.
    """
    ptr[0] = 0
    for r in range(len(own)):
        begin, end = np.int64(in_ptr[r]), np.int64(in_ptr[r + 1])
        at = begin + r
        ptr[r + 1] = end + r + 1
        index[_U(at)] = own[r]
        if kind is not None:
            kind[_U(at)] = -1
        copied = begin
        if begin + 4 <= len(in_row) and at + 5 <= len(index):
            copied += 4
            for k in range(4):
                index[_U(at + k + 1)] = in_row[_U(begin + k)]
                if kind is not None:
                    kind[_U(at + k + 1)] = in_edge[_U(begin + k)]
        for k in range(copied, end):
            index[_U(k + r + 1)] = in_row[_U(k)]
            if kind is not None:
                kind[_U(k + r + 1)] = in_edge[_U(k)]
