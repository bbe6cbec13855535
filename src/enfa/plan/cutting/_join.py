"""The maps of a batch, put together from what is known of each graph's runs.

``known`` is :class:`enfa.plan.cutting.known.Known`. The lists of a batch are the runs of those graphs that are ``alone`` in it,
one behind the other, and other lists; its rows are numbered likewise.
"""

import numpy as np

from enfa.cache import numba_kernel
from enfa.plan.derived._fill import pad_map
from enfa.plan.keys._prefetch import prefetch

__all__ = ["join_map"]

_AHEAD = 32  # lists between asking for memory and reading it
_GRAPHS_AHEAD = 2
_LINE = 16  # numbers that come together
_U = np.uint64  # numba checks signed places for being negative


@numba_kernel(inline="always")
def _ask(values, begin, end):
    """For the first lines of what will be read; what follows them comes by itself."""
    for k in range(begin, min(end, begin + 4 * _LINE), _LINE):
        prefetch(values, k)


@numba_kernel(inline="always")
def _shifted(values, begin, end, shift, out, at):
    for k in range(end - begin):
        out[_U(at + k)] = values[_U(begin + k)] + shift


@numba_kernel
def _gather(lists, ptr, index, weight, n, at, of, new_ptr, new_index, new_weight):
    """Some lists as they stand, one behind the other, the first being list ``n``; and the list of each entry."""
    last = len(lists) - 1
    for i in range(len(lists)):
        prefetch(ptr, np.int64(lists[min(i + 2 * _AHEAD, last)]))
        prefetch(index, np.int64(ptr[_U(lists[min(i + _AHEAD, last)])]))
        begin = np.int64(ptr[_U(lists[i])])
        length = np.int64(ptr[_U(lists[i]) + _U(1)]) - begin
        new_ptr[_U(n + i)] = at
        copied = 0
        if begin + 8 <= len(index) and at + 8 <= len(new_index):  # eight where there are fewer: most have no more
            copied = 8
            for k in range(8):
                new_index[_U(at + k)] = index[_U(begin + k)]
            for k in range(8):
                of[_U(at + k)] = n + i
            if weight is not None:
                for k in range(8):
                    new_weight[_U(at + k)] = weight[_U(begin + k)]
        for k in range(copied, length):
            new_index[_U(at + k)] = index[_U(begin + k)]
            of[_U(at + k)] = n + i
            if weight is not None:
                new_weight[_U(at + k)] = weight[_U(begin + k)]
        at += length
    new_ptr[_U(n + len(lists))] = at
    return at


@numba_kernel
def _join_lists(known, alone, others, number, base, of, ptr, index, weight, readers):
    """The lists of a batch. ``number[row] - base`` are new numbers; ``readers[row + 1]``, zero so far, counts the entries that
    name a row outside of runs. Returns the entries of runs and of all lists, and whether all rows have numbers.
    """
    lists = entries = rows = 0
    least = np.int64(0)
    for b in range(len(alone)):
        g = known.graphs[alone[b]]
        soon = known.graphs[alone[min(b + _GRAPHS_AHEAD, len(alone) - 1)]]
        _ask(known.ptr, soon.list_begin, soon.list_end)
        _ask(known.row, soon.begin, soon.end)
        _ask(known.out_at, soon.out_begin, soon.out_end)
        shift = entries - g.begin
        _shifted(known.ptr, g.list_begin, g.list_end, shift, ptr, lists)
        _shifted(known.row, g.begin, g.end, rows - g.row_begin, index, entries)
        if weight is not None:
            _ask(known.weight, soon.begin, soon.end)
            _shifted(known.weight, g.begin, g.end, 0, weight, entries)
        for k in range(g.out_begin, g.out_end):
            at = np.int64(known.out_at[_U(k)])
            row = np.int64(number[_U(known.row[_U(at)])]) - base
            least = min(least, row)
            index[_U(at + shift)] = row
            readers[_U(max(row, 0) + 1)] += 1
        rows += g.row_end - g.row_begin
        lists += g.list_end - g.list_begin
        entries += g.end - g.begin
    end = _gather(others, known.ptr, known.row, known.weight, lists, entries, of, ptr, index, weight)
    for k in range(entries, end):
        row = np.int64(number[_U(index[_U(k)])]) - base
        least = min(least, row)
        index[_U(k)] = row
        readers[_U(max(row, 0) + 1)] += 1
    return entries, end, least >= 0


@numba_kernel(inline="always")
def _place(index, weight, entry, reader, new_ptr, new_index, new_weight):
    row = _U(index[_U(entry)])
    place = new_ptr[row]
    new_ptr[row] = place + 1
    new_index[_U(place)] = reader
    if weight is not None:
        new_weight[_U(place)] = weight[_U(entry)]


@numba_kernel
def _join_readers(known, alone, rows, first, end, of, index, weight, new_ptr, new_index, new_weight):
    """The readers of the ``rows`` rows of a batch, after :func:`_join_lists`, which has counted those outside of runs.

    Nothing outside of a graph's run reads the rows of its run, so their readers are known. The others' are transposed as in
    ``transpose``.
    """
    row_at = list_at = at = 0
    for b in range(len(alone)):
        g = known.graphs[alone[b]]
        soon = known.graphs[alone[min(b + _GRAPHS_AHEAD, len(alone) - 1)]]
        _ask(known.back_ptr, soon.read_begin, soon.read_end)
        _ask(known.back_index, soon.back_begin, soon.back_end)
        _shifted(known.back_ptr, g.read_begin, g.read_end, at - g.back_begin, new_ptr, row_at)
        _shifted(known.back_index, g.back_begin, g.back_end, list_at - g.list_begin, new_index, at)
        if weight is not None:
            _ask(known.back_weight, soon.back_begin, soon.back_end)
            _shifted(known.back_weight, g.back_begin, g.back_end, 0, new_weight, at)
        row_at += g.row_end - g.row_begin
        list_at += g.list_end - g.list_begin
        at += g.back_end - g.back_begin
    new_ptr[row_at] = at
    for r in range(row_at + 1, rows + 1):
        new_ptr[r] += new_ptr[r - 1]
    list_at = entry_at = 0
    for n in alone:
        g = known.graphs[n]
        shift, list_shift = entry_at - g.begin, list_at - g.list_begin
        for k in range(g.out_begin, g.out_end):
            entry, reader = known.out_at[_U(k)] + shift, known.out_of[_U(k)] + list_shift
            _place(index, weight, entry, reader, new_ptr, new_index, new_weight)
        list_at += g.list_end - g.list_begin
        entry_at += g.end - g.begin
    for k in range(first, end):
        _place(index, weight, k, of[_U(k)], new_ptr, new_index, new_weight)
    for r in range(rows, row_at, -1):
        new_ptr[r] = new_ptr[r - 1]
    new_ptr[row_at] = at


@numba_kernel
def join_map(
    known, alone, others, lists, rows, number, base, chunk, of,
    ptr, index, weight, other, extra, long, fill,
    back_ptr, back_index, back_weight, back_other, back_extra, back_long, back_fill,
):  # fmt: skip
    """A map of a batch in both orders, padded.

    ``others``: lists outside of runs, ``lists``: how many there are of both; ``number[row] - base``: the new numbers of the
    ``rows`` rows. Returns 0 where there is no room for the pieces of long lists, -1 where a row has no number, 1 otherwise.
    """
    back_ptr[: rows + 1] = 0
    first, end, numbered = _join_lists(known, alone, others, number, base, of, ptr, index, weight, back_ptr)
    if not numbered:
        return -1
    _join_readers(known, alone, rows, first, end, of, index, weight, back_ptr, back_index, back_weight)
    fits = pad_map(
        lists, end, rows, chunk, ptr, index, weight, other, extra, long, fill,
        back_ptr, back_index, back_weight, back_other, back_extra, back_long, back_fill,
    )  # fmt: skip
    return 1 if fits else 0
