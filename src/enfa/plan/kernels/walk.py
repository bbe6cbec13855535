"""From the rows of one table to the keys of the next.

All kernels work on the subgraphs ``first`` to ``last - 1`` and stop early, returning the next one to do, when the
table (or the list of pairs) might be too small for it; the caller makes room and calls again.
"""

import numpy as np
from numba import njit

from enfa.plan.kernels.intern import intern, pack, sort_items

__all__ = ["base_rows", "deltas", "start_pairs", "walk"]


@njit(cache=True, nogil=True)
def base_rows(row, in_ptr, src, kind, items, slots, hashes, owns, ptr, stored, size, result):
    """Rows of the unedited graphs: ``result[v]`` for every node v from ``row``, its number one table before."""
    for v in range(len(row)):
        begin, end = in_ptr[v], in_ptr[v + 1]
        for p in range(begin, end):
            items[p - begin] = pack(row[src[p]], kind[p])
        sort_items(items, end - begin)
        result[v] = intern(row[v], items, end - begin, slots, hashes, owns, ptr, stored, size)


@njit(cache=True, nogil=True)
def start_pairs(
    start_kind, base, degrees, in_ptr, src, out_ptr, out_dst, dst,
    node_ptr, node, node_value, edge_ptr, edge, edge_value,
    slots, hashes, owns, ptr, stored, size, pair_ptr, pair_node, pair_row,
):  # fmt: skip
    """Affected rows of table 0: edited nodes, and with ``degrees`` nodes whose in-degree changed.

    The caller has made room for every pair.
    """
    n = len(start_kind)
    mark = np.zeros(n, np.int64)  # of the nodes in this subgraph
    gone = np.zeros(len(src), np.bool_)  # edges deleted in this subgraph
    seen = np.full(n, -1, np.int64)
    items = np.empty(1, np.int64)
    touched = np.empty(n + 1, np.int64)
    total = 0
    for s in range(len(node_ptr) - 1):
        count = 0
        for q in range(node_ptr[s], node_ptr[s + 1]):
            v = node[q]
            mark[v] = node_value[q]
            if seen[v] != s:
                seen[v] = s
                touched[count] = v
                count += 1
        if degrees:
            for q in range(node_ptr[s], node_ptr[s + 1]):
                if node_value[q] < 0:
                    for p in range(out_ptr[node[q]], out_ptr[node[q] + 1]):
                        w = out_dst[p]
                        if seen[w] != s:
                            seen[w] = s
                            touched[count] = w
                            count += 1
            for q in range(edge_ptr[s], edge_ptr[s + 1]):
                if edge_value[q] < 0:
                    gone[edge[q]] = True
                    w = dst[edge[q]]
                    if seen[w] != s:
                        seen[w] = s
                        touched[count] = w
                        count += 1
        for c in range(count):
            v = touched[c]
            if mark[v] < 0:
                row = -1
            else:
                degree = 0
                if degrees:
                    for p in range(in_ptr[v], in_ptr[v + 1]):
                        if mark[src[p]] >= 0 and not gone[p]:
                            degree += 1
                items[0] = pack(mark[v], degree)
                row = intern(start_kind[v], items, 1, slots, hashes, owns, ptr, stored, size)
                if row == base[v]:
                    continue
            pair_node[total] = v
            pair_row[total] = row
            total += 1
        pair_ptr[s + 1] = total
        for q in range(node_ptr[s], node_ptr[s + 1]):
            mark[node[q]] = 0
        for q in range(edge_ptr[s], edge_ptr[s + 1]):
            gone[edge[q]] = False


@njit(cache=True, nogil=True)
def walk(
    first, last, graph, graph_nodes, graph_edges, row, base, seen, in_ptr, src, kind, base_kind,
    out_ptr, out_dst, dst, edge_ptr, edge, edge_value, pair_ptr, pair_node, pair_row, items, candidates,
    slots, hashes, owns, ptr, stored, size, next_ptr, next_node, next_row,
):  # fmt: skip
    """One layer: from the affected (node, row) pairs of table i-1 to those of table i.

    ``row[v]`` holds the base rows of table i-1, ``base[v]`` those of table i; ``row`` and ``kind`` are overwritten
    for one subgraph at a time and restored. Candidates are the affected nodes, whatever they send to, and the
    targets of edited edges; one whose key turns out to be its base row is dropped again. ``items`` is scratch for the messages into one
    node, ``candidates`` for the nodes of one graph.
    """
    for s in range(first, last):
        g = graph[s]
        if (
            2 * (size[0] + graph_nodes[g] + 1) > len(slots)
            or size[0] + graph_nodes[g] >= len(owns)
            or size[1] + graph_edges[g] > len(stored)
            or next_ptr[s] + graph_nodes[g] > len(next_node)
        ):
            return s
        begin, end = pair_ptr[s], pair_ptr[s + 1]
        count = 0
        for q in range(begin, end):
            v = pair_node[q]
            pair_row[q], row[v] = row[v], pair_row[q]  # swapped back below
            seen[v] = s
            candidates[count] = v
            count += 1
        for q in range(edge_ptr[s], edge_ptr[s + 1]):
            e = edge[q]
            kind[e] = -1 if edge_value[q] < 0 else base_kind[e] + edge_value[q]
            if seen[dst[e]] != s:
                seen[dst[e]] = s
                candidates[count] = dst[e]
                count += 1
        for q in range(begin, end):
            v = pair_node[q]
            for p in range(out_ptr[v], out_ptr[v + 1]):
                w = out_dst[p]
                if seen[w] != s:
                    seen[w] = s
                    candidates[count] = w
                    count += 1
        total = next_ptr[s]
        for c in range(count):
            v = candidates[c]
            own = row[v]
            if own < 0:
                next_node[total] = v
                next_row[total] = -1
                total += 1
                continue
            length = 0
            for p in range(in_ptr[v], in_ptr[v + 1]):
                r = row[src[p]]
                if r >= 0 and kind[p] >= 0:
                    items[length] = pack(r, kind[p])
                    length += 1
            sort_items(items, length)
            new = intern(own, items, length, slots, hashes, owns, ptr, stored, size)
            if new != base[v]:
                next_node[total] = v
                next_row[total] = new
                total += 1
        next_ptr[s + 1] = total
        for q in range(begin, end):
            v = pair_node[q]
            pair_row[q], row[v] = row[v], pair_row[q]
        for q in range(edge_ptr[s], edge_ptr[s + 1]):
            e = edge[q]
            kind[e] = base_kind[e]
    return last


@njit(cache=True, nogil=True)
def deltas(first, last, base, pair_ptr, pair_node, pair_row, items, slots, hashes, owns, ptr, stored, size, result):
    """What a subgraph's pool has more (or less) than its graph's: distinct lists of (row, net count)."""
    for s in range(first, last):
        begin, end = pair_ptr[s], pair_ptr[s + 1]
        if (
            2 * (size[0] + 2) > len(slots)
            or size[0] + 1 >= len(owns)
            or size[1] + 2 * (end - begin) > len(stored)
        ):
            return s
        length = 0
        for q in range(begin, end):
            items[length] = np.int64(base[pair_node[q]]) * 2  # odd: one more; even: one less
            length += 1
            if pair_row[q] >= 0:
                items[length] = np.int64(pair_row[q]) * 2 + 1
                length += 1
        sort_items(items, length)
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
        result[s] = intern(0, items, kept, slots, hashes, owns, ptr, stored, size)
    return last
