"""Kernels over lists of pairs, for :mod:`enfa.plan.rows.pairs`."""

import numpy as np

from enfa.cache import numba_kernel
from enfa.plan.keys._intern import Keys, intern, pack, sort_items
from enfa.plan.rows._groups import Bags, Edges
from enfa.plan.rows._walk import swap_rows

__all__ = ["count_by_graph", "deltas", "join_pairs", "list_all", "pass_between", "place_all", "root_rows"]


@numba_kernel
def list_all(first, nodes, pairs, new):
    """All nodes of all subgraphs; ``first[s]`` and ``nodes[s]``: those of the graph. Base rows are scratch, and restored."""
    base, ptr, node, row, complete = pairs
    _, new_ptr, new_node, new_row, _ = new
    total = 0
    for s in range(len(ptr) - 1):
        if complete[s]:
            for q in range(ptr[s], ptr[s + 1]):
                new_node[total], new_row[total] = node[q], row[q]
                total += 1
        else:
            swap_rows(pairs, s)
            for v in range(first[s], first[s] + nodes[s]):
                if base[v] >= 0:
                    new_node[total], new_row[total] = v, base[v]
                    total += 1
            swap_rows(pairs, s)
        new_ptr[s + 1] = total


@numba_kernel
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


@numba_kernel
def count_by_graph(some_ptr, some_row, some_count, more_ptr, more_row, place, ptr, row, count):
    """The rows of every graph, each once, and how often it has them: some with counts, and more that count 1 (-1: no row).

    ``place`` is scratch for each row, -1 at first: where it stands in the list of the graph that had it last.
    """
    total = 0
    for g in range(len(ptr) - 1):
        begin = total
        for q in range(some_ptr[g], some_ptr[g + 1]):
            r = some_row[q]
            if some_count[q] != 0:
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


@numba_kernel
def join_pairs(a, b, seen, keys: Keys, new):
    """Keys (row in a, row in b). The base rows of both are overwritten, and restored; the caller has made room."""
    base, ptr, node, row, _ = new
    items = np.empty(1, np.int64)
    total = 0
    for s in range(len(ptr) - 1):
        swap_rows(a, s)
        swap_rows(b, s)
        complete = a.complete[s] or b.complete[s]
        for side in (a, b):
            if complete and not side.complete[s]:
                continue
            for q in range(side.ptr[s], side.ptr[s + 1]):
                v = side.node[q]
                if seen[v] == s:
                    continue
                seen[v] = s
                found = -1
                if a.base[v] >= 0 and b.base[v] >= 0:
                    items[0] = pack(b.base[v], 0)
                    found = intern(np.int64(a.base[v]), items, np.int64(1), keys)
                if complete or found != base[v]:
                    node[total], row[total] = v, found
                    total += 1
        swap_rows(a, s)
        swap_rows(b, s)
        ptr[s + 1] = total


@numba_kernel
def pass_between(first, bags: Bags, edges: Edges, kind, pairs, dense, items, keys: Keys, result):
    """(j, v) reads (k, v) for the edges from the root of k to that of j; all pairs are listed.

    Goes on from graph ``first`` and stops, returning the next graph to do, where the table might be too small for it.
    ``dense`` holds the rows of one graph's pairs, -1 in between.
    """
    node_ptr, sub_ptr, root, own = bags
    _, ptr, node, row, _ = pairs
    in_ptr, src = edges.in_ptr, edges.src
    for g in range(first, len(node_ptr) - 1):
        n, begin, end = node_ptr[g + 1] - node_ptr[g], sub_ptr[g], sub_ptr[g + 1]
        rows = messages = 0
        for s in range(begin, end):
            if root[s] >= 0:
                rows += ptr[s + 1] - ptr[s]
                messages += (ptr[s + 1] - ptr[s]) * (in_ptr[root[s] + 1] - in_ptr[root[s]])
        if keys.size[0] + rows >= len(keys.hashes) or keys.size[1] + messages > len(keys.stored):
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
                sort_items(items, np.int64(length))
                result[q] = intern(np.int64(row[q]), items, np.int64(length), keys)
        for s in range(begin, end):
            for q in range(ptr[s], ptr[s + 1]):
                dense[(s - begin) * n + node[q] - node_ptr[g]] = -1
    return len(node_ptr) - 1


@numba_kernel
def root_rows(roots, pairs, result):
    """The row of every subgraph's roots; -1 where it has none."""
    base, pair_ptr, pair_node, pair_row, _ = pairs
    for s in range(len(roots)):
        for i in range(roots.shape[1]):
            v = roots[s, i]
            if v < 0:
                result[s, i] = -1
                continue
            result[s, i] = base[v]
            for q in range(pair_ptr[s], pair_ptr[s + 1]):
                if pair_node[q] == v:
                    result[s, i] = pair_row[q]


@numba_kernel
def deltas(first, pairs, items, keys: Keys, result):
    """What a subgraph's pool has more (or less) than its graph's: distinct lists of (row, net count).

    For a complete subgraph, its whole pool. A base row below 0 is in no pool, so nothing takes it away again. Goes on from
    subgraph ``first`` and stops, returning the next one to do, where the table might be too small for it.
    """
    base, pair_ptr, pair_node, pair_row, keeps = pairs
    for s in range(first, len(pair_ptr) - 1):
        begin, end = pair_ptr[s], pair_ptr[s + 1]
        if keys.size[0] + 1 >= len(keys.hashes) or keys.size[1] + 2 * (end - begin) > len(keys.stored):
            return s
        length = 0
        for q in range(begin, end):
            if not keeps[s] and base[pair_node[q]] >= 0:
                items[length] = np.int64(base[pair_node[q]]) * 2  # odd: one more; even: one less
                length += 1
            if pair_row[q] >= 0:
                items[length] = np.int64(pair_row[q]) * 2 + 1
                length += 1
        sort_items(items, np.int64(length))
        kept = 0
        at = 0
        while at < length:
            r = items[at] >> np.int64(1)
            net = 0
            while at < length and (items[at] >> np.int64(1)) == r:
                net += 2 * (items[at] & np.int64(1)) - 1
                at += 1
            if net != 0:
                items[kept] = pack(r, net)
                kept += 1
        result[s] = intern(np.int64(0), items, np.int64(kept), keys)
    return len(pair_ptr) - 1
