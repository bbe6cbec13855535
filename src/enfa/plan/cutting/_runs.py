"""Which graphs use a row, and where the rows that one graph, or it and its mate, use lie side by side."""

import numpy as np

from enfa.cache import numba_kernel
from enfa.plan.keys._intern import first_half, second_half
from enfa.plan.keys._prefetch import prefetch
from enfa.plan.slicing._slice import number_of

__all__ = ["UNUSED", "claim_keys", "claim_rows", "enter_graphs", "keep_runs", "match", "total_length", "two_users"]

UNUSED, SHARED = -1, -2  # owners that are no graph
_AHEAD = 64  # rows between asking for memory and reading it
_U = np.uint64  # numba checks signed places for being negative


@numba_kernel
def two_users(ptr, lists, heads, items, latest, users, count):
    """``users`` [2, rows]: the first two graphs that use a row; the second is SHARED if there are more.

    Graph g uses the rows of ``lists[ptr[g]:ptr[g+1]]``: ``count[g]`` of them, from 0. ``users`` and the scratch ``latest``, for
    each row, come as UNUSED.
    """
    for g in range(len(ptr) - 1):
        for q in range(ptr[g], ptr[g + 1]):
            for k in range(first_half(heads[lists[q]]), first_half(heads[lists[q] + 1])):
                row = first_half(items[k])
                if latest[row] != g:
                    latest[row] = g
                    count[g] += 1
                    if users[0, row] == UNUSED:
                        users[0, row] = g
                    else:
                        users[1, row] = g if users[1, row] == UNUSED else SHARED


@numba_kernel
def match(one, other, mate):
    """Pairs of graphs, the best first: each graph gets one mate at most. ``mate`` comes as every graph's own number."""
    for k in range(len(one)):
        a, b = one[k], other[k]
        if mate[a] == a and mate[b] == b:
            mate[a], mate[b] = b, a


@numba_kernel(inline="always")
def _claim(row, claim, owner):
    known = owner[row]
    if known == UNUSED:
        owner[row] = claim
    elif known != claim:
        # the same pair: those of it that use the row
        owner[row] = known | claim if known >= 0 and claim >= 0 and known >> 2 == claim >> 2 else SHARED


@numba_kernel
def claim_rows(ptr, rows, claim, owner):
    """Graph g uses ``rows[ptr[g]:ptr[g+1]]``.

    A claim, and an owner, is four times the number of a pair of graphs, and 1 for its first, 2 for its second one, 3 for both.
    """
    for g in range(len(ptr) - 1):
        for k in range(ptr[g], ptr[g + 1]):
            _claim(rows[k], claim[g], owner)


@numba_kernel
def claim_keys(key_owner, heads, items, has_own, owner):
    """What uses a key uses the rows of its items and, if it ``has_own``, its own row."""
    for i in range(len(key_owner)):
        if key_owner[i] != UNUSED:
            if has_own:
                _claim(second_half(heads[i]), key_owner[i], owner)
            for k in range(first_half(heads[i]), first_half(heads[i + 1])):
                _claim(first_half(items[k]), key_owner[i], owner)


@numba_kernel
def keep_runs(owner, of_pair, begin, end):
    """The longest run of rows of each graph, of those that are the first, or the second, of their pairs.

    ``of_pair``: that graph of each pair, times four, and 1 or 2 as in a claim; -1 for a pair without one. Rows outside of
    the runs are shared from now on; returns how many.
    """
    graph = -1
    start = 0
    for r in range(len(owner) + 1):
        o = owner[r] if r < len(owner) else SHARED
        g = -1
        if o >= 0 and of_pair[o >> 2] >= 0:
            side, g = of_pair[o >> 2] & 3, of_pair[o >> 2] >> 2
            g = g if o & side else -1
        if g != graph:
            if graph >= 0 and r - start > end[graph] - begin[graph]:
                begin[graph], end[graph] = start, r
            graph, start = g, r
    lost = 0
    for r in range(len(owner)):
        o = owner[r]
        if o >= 0 and of_pair[o >> 2] >= 0 and o & of_pair[o >> 2] & 3:
            g = of_pair[o >> 2] >> 2
            if not begin[g] <= r < end[g]:
                owner[r] = SHARED
                lost += 1
    return lost


@numba_kernel
def enter_graphs(graphs, alone, rows, number, base, found, total):
    """Number the rows of some graphs: the runs of those that are ``alone``, one behind the other, and then what is met.

    ``rows``: :class:`enfa.plan.cutting.by_graph.ByGraph`; ``number``, ``base`` and ``found`` as in ``collect``. ``total``, zero
    so far, gets the counts by new number. Returns how many rows lie in runs, and how many there are.
    """
    count = 0
    for b in range(len(graphs)):
        if alone[b]:
            g = graphs[b]
            begin, first = rows.begin[g], rows.first[g]
            length = rows.end[g] - begin
            for k in range(length):
                number[_U(begin + k)] = base + count + k
            for k in range(length):
                found[_U(count + k)] = begin + k
            for k in range(length):
                total[_U(count + k)] = rows.of_run[_U(first + k)]
            count += length
    in_runs = count
    others, times = rows.row, rows.times
    last = len(others) - 1
    for b in range(len(graphs)):
        g = graphs[b]
        if not alone[b]:
            begin, first = rows.begin[g], rows.first[g]
            for k in range(rows.end[g] - begin):
                new = number_of(_U(begin + k), number, base, found, count)
                count += new == count
                total[_U(new)] += rows.of_run[_U(first + k)]
        for k in range(rows.ptr[g], rows.ptr[g + 1]):
            prefetch(number, np.int64(others[_U(min(k + _AHEAD, last))]))
            new = number_of(_U(others[_U(k)]), number, base, found, count)
            count += new == count
            total[_U(new)] += times[_U(k)]
    return in_runs, count


@numba_kernel
def total_length(lists, ptr):
    """How many entries some lists have."""
    last = len(lists) - 1
    total = 0
    for i in range(len(lists)):
        prefetch(ptr, np.int64(lists[min(i + _AHEAD, last)]))
        total += ptr[_U(lists[i]) + _U(1)] - ptr[_U(lists[i])]
    return total
