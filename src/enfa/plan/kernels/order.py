"""Lists of rows turned round, from "what each sum reads" to "who reads each row", and cut into even pieces."""

from numba import njit

__all__ = ["add_up", "count_long", "merge_own", "split_long", "turn_round"]


@njit(cache=True, nogil=True)
def turn_round(ptr, index, weight, other, new_ptr, at, new_index, new_weight, new_other):
    """For every value of ``index`` the lists that hold it, in order, with what each entry carries.

    ``new_ptr`` comes zeroed; ``at`` is scratch, one shorter. An empty ``weight`` or ``other`` is not read.
    """
    weighted, more = len(weight) > 0, len(other) > 0
    for k in range(len(index)):
        new_ptr[index[k] + 1] += 1
    for v in range(len(at)):
        new_ptr[v + 1] += new_ptr[v]
        at[v] = new_ptr[v]
    for n in range(len(ptr) - 1):
        for k in range(ptr[n], ptr[n + 1]):
            v = index[k]
            place = at[v]
            at[v] = place + 1
            new_index[place] = n
            if weighted:
                new_weight[place] = weight[k]
            if more:
                new_other[place] = other[k]


@njit(cache=True, nogil=True)
def add_up(ptr, row, count, place, new_ptr, new_row, new_count):
    """Add up equal rows of every list and drop those whose counts cancel, the rest in order. Returns the new length.

    ``place`` is scratch, -1 for every row of the table, and is left so. Nothing is sorted: a list costs its length.
    """
    end = 0
    for n in range(len(ptr) - 1):
        begin = end
        for k in range(ptr[n], ptr[n + 1]):
            r = row[k]
            if place[r] < 0:
                place[r] = end
                new_row[end] = r
                new_count[end] = count[k]
                end += 1
            else:
                new_count[place[r]] += count[k]
        kept = begin
        for k in range(begin, end):
            place[new_row[k]] = -1
            if new_count[k] != 0:
                new_row[kept] = new_row[k]
                new_count[kept] = new_count[k]
                kept += 1
        end = kept
        new_ptr[n + 1] = end
    return end


@njit(cache=True, nogil=True)
def count_long(ptr, chunk):
    """Lists of more than ``chunk`` entries, and the pieces of ``chunk`` that they have behind the first."""
    pieces = 0
    lists = 0
    for n in range(len(ptr) - 1):
        behind = ptr[n + 1] - ptr[n] - chunk
        if behind > 0:
            pieces += (behind + chunk - 1) // chunk
            lists += 1
    return pieces, lists


@njit(cache=True, nogil=True)
def split_long(ptr, chunk, first, extra, long):
    """Pieces of at most ``chunk`` entries of what each list has behind its first ``first`` entries.

    Lists without any are left out of ``long``, unless ``first`` is 0: then every list has its place there.

    ``extra`` [3, pieces] gets where each begins and ends and of which list it is, ``long`` [3, lists] the list, its
    first piece and the piece behind its last. Returns the numbers of pieces and of lists.
    """
    pieces = 0
    lists = 0
    for n in range(len(ptr) - 1):
        begin, end = ptr[n] + first, ptr[n + 1]
        if begin >= end and first > 0:
            continue
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


@njit(cache=True, nogil=True)
def merge_own(own, in_ptr, in_row, in_edge, ptr, index, kind):
    """Every row's own row, with kind -1, in front of its incoming rows. An empty ``kind`` is not written."""
    with_kind = len(kind) > 0
    at = 0
    for r in range(len(own)):
        ptr[r] = at
        index[at] = own[r]
        if with_kind:
            kind[at] = -1
        at += 1
        for k in range(in_ptr[r], in_ptr[r + 1]):
            index[at] = in_row[k]
            if with_kind:
                kind[at] = in_edge[k]
            at += 1
    ptr[len(own)] = at
