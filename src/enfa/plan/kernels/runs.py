"""Which graphs use a row, and where the rows that one graph, or it and its mate, use lie side by side."""

import numpy as np
from numba import njit

from enfa.plan.kernels.intern import first_half, second_half
from enfa.plan.kernels.slice import head_of, number_of

__all__ = [
    "NOBODY",
    "SHARED",
    "claim_keys",
    "claim_rows",
    "copy_runs",
    "descend_runs",
    "enter_outside",
    "enter_runs",
    "keep_runs",
    "match",
    "two_users",
]

NOBODY, SHARED = -1, -2  # owners that are no graph
_U = np.uint64  # numba checks signed places for being negative


@njit(cache=True, inline="always")
def _note(row, g, users):
    first, second = users[0, row], users[1, row]
    if first == NOBODY:
        users[0, row] = g
    elif first != g and second == NOBODY:
        users[1, row] = g
    elif first != g and second != g:
        users[1, row] = SHARED


@njit(cache=True, nogil=True)
def two_users(base_ptr, base_row, sub_ptr, sub_delta, heads, items, seen, users):
    """``users`` [2, rows]: the first two graphs that use a row of table L; the second is SHARED if there are more.

    ``users`` and ``seen``, one number for each delta, come as NOBODY.
    """
    for g in range(len(base_ptr) - 1):
        for v in range(base_ptr[g], base_ptr[g + 1]):
            _note(base_row[v], g, users)
        for s in range(sub_ptr[g], sub_ptr[g + 1]):
            delta = sub_delta[s]
            if seen[delta] != g:
                seen[delta] = g
                for k in range(first_half(heads[delta]), first_half(heads[delta + 1])):
                    _note(first_half(items[k]), g, users)


@njit(cache=True, nogil=True)
def match(one, other, mate):
    """Pairs of graphs, the best first: each graph gets one mate at most. ``mate`` comes as every graph's own number."""
    for k in range(len(one)):
        a, b = one[k], other[k]
        if mate[a] == a and mate[b] == b:
            mate[a], mate[b] = b, a


@njit(cache=True, inline="always")
def _claim(row, claim, owner):
    known = owner[row]
    if known == NOBODY:
        owner[row] = claim
    elif known != claim:
        # the same pair: whoever of it uses the row
        owner[row] = known | claim if known >= 0 and claim >= 0 and known >> 2 == claim >> 2 else SHARED


@njit(cache=True, nogil=True)
def claim_rows(ptr, rows, claim, owner):
    """Graph g uses ``rows[ptr[g]:ptr[g+1]]``.

    A claim, and an owner, is four times the number of a pair of graphs, and 1 for its first, 2 for its second one, 3 for both.
    """
    for g in range(len(ptr) - 1):
        for k in range(ptr[g], ptr[g + 1]):
            _claim(rows[k], claim[g], owner)


@njit(cache=True, nogil=True)
def claim_keys(key_owner, heads, items, has_own, owner):
    """Whoever uses a key uses the rows of its items and, if it ``has_own``, its own row."""
    for i in range(len(key_owner)):
        if key_owner[i] != NOBODY:
            if has_own:
                _claim(second_half(heads[i]), key_owner[i], owner)
            for k in range(first_half(heads[i]), first_half(heads[i + 1])):
                _claim(first_half(items[k]), key_owner[i], owner)


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def enter_runs(graphs, begin, end, number, base, found):
    """Number the runs of some graphs, one behind the other; ``number``, ``base`` and ``found`` as in ``collect``."""
    at = 0
    for g in graphs:
        for r in range(begin[g], end[g]):
            number[_U(r)] = base + at
            found[_U(at)] = r
            at += 1
    return at


@njit(cache=True, nogil=True)
def enter_outside(graphs, ptr, row, amount, number, base, found, count, total):
    """``collect`` for the rows ``ptr[g]:ptr[g+1]`` of some graphs; their amounts are added to ``total``, by new number."""
    for g in graphs:
        for k in range(ptr[g], ptr[g + 1]):
            new = number_of(_U(row[_U(k)]), number, base, found, count)
            count += new == count
            total[_U(new)] += amount[_U(k)]
    return count


@njit(cache=True, nogil=True)
def descend_runs(
    graphs, begin, end, value_begin, value_end, values, ptr, row, amount, others, heads, above, number, base, found, total,
):  # fmt: skip
    """The rows of a table that some graphs need: their runs, rows outside that runs above name, and the own rows of ``others``.

    ``total`` gets what each row is worth: in runs its value, outside the sum of what names it is worth. Returns how many rows
    lie in runs, how many there are, and the number of items of ``others``.
    """
    in_runs = enter_runs(graphs, begin, end, number, base, found)
    copy_runs(graphs, value_begin, value_end, values, total)
    count = enter_outside(graphs, ptr, row, amount, number, base, found, in_runs, total)
    items = 0
    last = len(others) - 1
    for i in range(len(others)):
        own_row, more = head_of(others, i, last, heads, number)
        items += more
        new = number_of(own_row, number, base, found, count)
        count += new == count
        total[_U(new)] += above[i]
    return in_runs, count, items


@njit(cache=True, nogil=True)
def copy_runs(graphs, begin, end, values, out):
    """What some numbers are for the runs of some graphs, one behind the other."""
    at = 0
    for g in graphs:
        for r in range(begin[g], end[g]):
            out[_U(at)] = values[_U(r)]
            at += 1
