"""Kernels over lists of pairs, for :mod:`enfa.plan.rows.pairs`."""

import numpy as np
from numba import njit

from enfa.plan.rows._intern import intern, pack, sort_items

__all__ = ["count_by_graph", "join_pairs", "list_all", "pass_between", "place_all"]


@njit(cache=True, nogil=True)
def list_all(first, nodes, complete, base, ptr, node, row, new_ptr, new_node, new_row):
    """All nodes of all subgraphs; ``first[s]`` and ``nodes[s]``: those of the graph. ``base`` is scratch, and restored."""
    total = 0
    for s in range(len(ptr) - 1):
        if complete[s]:
            for q in range(ptr[s], ptr[s + 1]):
                new_node[total], new_row[total] = node[q], row[q]
                total += 1
        else:
            for q in range(ptr[s], ptr[s + 1]):
                row[q], base[node[q]] = base[node[q]], row[q]
            for v in range(first[s], first[s] + nodes[s]):
                if base[v] >= 0:
                    new_node[total], new_row[total] = v, base[v]
                    total += 1
            for q in range(ptr[s], ptr[s + 1]):
                row[q], base[node[q]] = base[node[q]], row[q]
        new_ptr[s + 1] = total


@njit(cache=True, nogil=True)
def place_all(first, nodes, complete, base, ptr, node, row, out):
    """The rows of all pairs, by subgraph and then by node; ``first[s]`` and ``nodes[s]``: the nodes of its graph."""
    most = 0
    for s in range(len(nodes)):
        most = max(most, nodes[s])
    here = np.empty(most, np.int32)
    total = 0
    for s in range(len(ptr) - 1):
        for v in range(nodes[s]):
            here[v] = -1 if complete[s] else base[first[s] + v]
        for q in range(ptr[s], ptr[s + 1]):
            here[node[q] - first[s]] = row[q]
        for v in range(nodes[s]):
            if here[v] >= 0:
                out[total] = here[v]
                total += 1


@njit(cache=True, nogil=True)
def count_by_graph(some_ptr, some_row, some_count, more_ptr, more_row, place, ptr, row, count):
    """The rows of every graph, each once, and how often it has them: some with counts, and more that count 1 (-1: no row).

    ``place`` is scratch for each row, -1 at first: where it stands in the list of the graph that had it last.
    """
    total = 0
    for g in range(len(ptr) - 1):
        begin = total
        for q in range(some_ptr[g], some_ptr[g + 1]):
            r = some_row[q]
            if some_count[q] > 0:
                if place[r] < begin:
                    place[r], row[total], count[total] = total, r, 0
                    total += 1
                count[place[r]] += some_count[q]
        for q in range(more_ptr[g], more_ptr[g + 1]):
            r = more_row[q]
            if r >= 0:
                if place[r] < begin:
                    place[r], row[total], count[total] = total, r, 0
                    total += 1
                count[place[r]] += 1
        ptr[g + 1] = total


@njit(cache=True, nogil=True)
def join_pairs(
    a, a_ptr, a_node, a_row, a_complete, b, b_ptr, b_node, b_row, b_complete, base, seen,
    slots, hashes, heads, stored, size, ptr, node, row,
):  # fmt: skip
    """Keys (row in a, row in b). ``a`` and ``b`` are base rows, scratch, and restored; the caller has made room."""
    items = np.empty(1, np.int64)
    total = 0
    for s in range(len(ptr) - 1):
        for q in range(a_ptr[s], a_ptr[s + 1]):
            a_row[q], a[a_node[q]] = a[a_node[q]], a_row[q]
        for q in range(b_ptr[s], b_ptr[s + 1]):
            b_row[q], b[b_node[q]] = b[b_node[q]], b_row[q]
        complete = a_complete[s] or b_complete[s]
        for side in range(2):
            nodes = a_node if side == 0 else b_node
            begin, end = (a_ptr[s], a_ptr[s + 1]) if side == 0 else (b_ptr[s], b_ptr[s + 1])
            if complete and not (a_complete[s] if side == 0 else b_complete[s]):
                continue
            for q in range(begin, end):
                v = nodes[q]
                if seen[v] == s:
                    continue
                seen[v] = s
                new = -1
                if a[v] >= 0 and b[v] >= 0:
                    items[0] = pack(b[v], 0)
                    new = intern(a[v], items, 1, slots, hashes, heads, stored, size)
                if complete or new != base[v]:
                    node[total], row[total] = v, new
                    total += 1
        for q in range(a_ptr[s], a_ptr[s + 1]):
            a_row[q], a[a_node[q]] = a[a_node[q]], a_row[q]
        for q in range(b_ptr[s], b_ptr[s + 1]):
            b_row[q], b[b_node[q]] = b[b_node[q]], b_row[q]
        ptr[s + 1] = total


@njit(cache=True, nogil=True)
def pass_between(
    first, node_ptr, sub_ptr, root, own, in_ptr, src, kind, ptr, node, row, dense, items,
    slots, hashes, heads, stored, size, result,
):  # fmt: skip
    """(j, v) reads (k, v) for the edges from the root of k to that of j; all pairs are listed.

    Goes on from graph ``first`` and stops, returning the next graph to do, where the table might be too small for it.
    ``dense`` holds the rows of one graph's pairs, -1 in between.
    """
    for g in range(first, len(node_ptr) - 1):
        n, begin, end = node_ptr[g + 1] - node_ptr[g], sub_ptr[g], sub_ptr[g + 1]
        rows = messages = 0
        for s in range(begin, end):
            if root[s] >= 0:
                rows += ptr[s + 1] - ptr[s]
                messages += (ptr[s + 1] - ptr[s]) * (in_ptr[root[s] + 1] - in_ptr[root[s]])
        if size[0] + rows >= len(hashes) or size[1] + messages > len(stored):
            return g
        for s in range(begin, end):
            for q in range(ptr[s], ptr[s + 1]):
                dense[(s - begin) * n + node[q] - node_ptr[g]] = row[q]
        for s in range(begin, end):
            for q in range(ptr[s], ptr[s + 1]):
                length = 0
                for p in range(in_ptr[root[s]], in_ptr[root[s] + 1]):
                    r = dense[(own[src[p]] - begin) * n + node[q] - node_ptr[g]]
                    if r >= 0:
                        items[length] = pack(r, kind[p])
                        length += 1
                sort_items(items, length)
                result[q] = intern(row[q], items, length, slots, hashes, heads, stored, size)
        for s in range(begin, end):
            for q in range(ptr[s], ptr[s + 1]):
                dense[(s - begin) * n + node[q] - node_ptr[g]] = -1
    return len(node_ptr) - 1
