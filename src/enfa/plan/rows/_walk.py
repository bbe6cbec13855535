"""From the rows of one table to the keys of the next.

All kernels work on the subgraphs ``first`` to ``last - 1`` and stop early, returning the next one to do, when the
table (or the list of pairs) might be too small for it; the caller makes room and calls again.
"""

import numpy as np
from numba import njit

from enfa.plan.rows._intern import intern, pack, sort_items

__all__ = [
    "HUB", "base_rows", "deltas", "links_of", "reached", "restore_kinds", "root_rows", "start_pairs",
    "swap_rows", "walk",
]  # fmt: skip

HUB = 64  # in-degree from which the order of a node's edges is kept


@njit(cache=True, nogil=True)
def base_rows(row, in_ptr, src, kind, items, slots, hashes, heads, stored, size, result):
    """Rows of the unedited graphs: ``result[v]`` for every node v from ``row``, its number one table before."""
    for v in range(len(row)):
        begin, end = in_ptr[v], in_ptr[v + 1]
        for p in range(begin, end):
            items[p - begin] = pack(row[src[p]], kind[p])
        sort_items(items, end - begin)
        result[v] = intern(row[v], items, end - begin, slots, hashes, heads, stored, size)


@njit(cache=True, nogil=True)
def start_pairs(
    start_kind, base, degrees, in_ptr, src, out_ptr, out_dst, dst,
    keeps, node_ptr, node, node_value, edge_ptr, edge, edge_value,
    slots, hashes, heads, stored, size, pair_ptr, pair_node, pair_row,
):  # fmt: skip
    """Affected rows of table 0: edited nodes, and with ``degrees`` nodes whose in-degree changed.

    A subgraph that keeps nodes has a pair for each of them, whether its row is the base row or not. The caller has made
    room for every pair.
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
                    if seen[w] != s and not keeps[s]:
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
                        if mark[src[p]] >= 0 and not gone[p] and (not keeps[s] or seen[src[p]] == s):
                            degree += 1
                items[0] = pack(mark[v], degree)
                row = intern(start_kind[v], items, 1, slots, hashes, heads, stored, size)
                if row == base[v] and not keeps[s]:
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
def links_of(nodes, begin, end, ptr):
    """How many edges some nodes have."""
    total = 0
    for i in range(begin, end):
        total += ptr[nodes[i] + 1] - ptr[nodes[i]]
    return total


@njit(cache=True, nogil=True)
def reached(roots, depth, limit, in_ptr, src, stamp, reach, queue):
    """Stamp the nodes from which a root can be reached in ``depth`` edges; returns how many stand in ``queue``.

    Gives up where they are more than ``limit``, and returns more than that.
    """
    end = 0
    for i in range(len(roots)):
        if roots[i] >= 0 and reach[roots[i]] != stamp:
            reach[roots[i]] = stamp
            queue[end] = roots[i]
            end += 1
    at = 0
    for _ in range(depth):
        border = end
        while at < border:
            v = queue[at]
            for p in range(in_ptr[v], in_ptr[v + 1]):
                if reach[src[p]] != stamp:
                    reach[src[p]] = stamp
                    queue[end] = src[p]
                    end += 1
                    if end > limit:
                        return end
            at += 1
    return end


@njit(cache=True, nogil=True)
def swap_rows(nodes, rows, begin, end, row):
    """Exchange the rows of some nodes with those listed; once more undoes it."""
    for q in range(begin, end):
        v = nodes[q]
        rows[q], row[v] = row[v], rows[q]


@njit(cache=True, nogil=True)
def restore_kinds(edge, begin, end, base_kind, kind):
    for q in range(begin, end):
        kind[edge[q]] = base_kind[edge[q]]


@njit(cache=True, nogil=True)
def walk(
    first, last, keeps, roots, depth, row, base, seen, reach, in_ptr, src, order, kind, base_kind,
    out_ptr, out_dst, dst, edge_ptr, edge, edge_value, pair_ptr, pair_node, pair_row, items, candidates, queue, need,
    hub_ptr, hub_node, hub_change, change_row, change_of,
    slots, hashes, heads, stored, size, next_ptr, next_node, next_row,
):  # fmt: skip
    """One layer: from the affected (node, row) pairs of table i-1 to those of table i.

    ``row[v]`` holds the base rows of table i-1, ``base[v]`` those of table i; ``row`` and ``kind`` are overwritten
    for one subgraph at a time and restored. Candidates are the affected nodes, whatever they send to, and the
    targets of edited edges; one whose key turns out to be its base row is dropped again. A subgraph that keeps nodes
    has these as candidates and no others, and drops none.

    With ``depth >= 0`` only nodes from which a root can be reached in so many edges are candidates: no root will
    ever read the others. (Where far more are within reach than can be affected, that is not looked into.) ``order`` lists
    the edges into a node of more than ``HUB`` so that its base key comes out sorted, and that of an edited subgraph nearly
    so. ``items`` is scratch for the messages into one node, ``candidates`` and ``queue`` for nodes. Where there is no room
    for a subgraph, ``need[0]`` and ``need[1]`` say how many rows and items it may add; ``need[2]`` adds up the messages
    looked at, and where they would pass ``need[3]``, ``need[0]`` is -1. ``hub_ptr``, ``hub_node`` and ``hub_change`` are
    from :func:`~enfa.plan.rows._hubs.hub_changes`; ``change_row`` holds the row that each change makes, -1 until it is
    known; ``change_of`` is scratch, -1 for each node.
    """
    for s in range(first, last):
        begin, end = pair_ptr[s], pair_ptr[s + 1]
        keep, near, sends = keeps[s], 0, links_of(pair_node, begin, end, out_ptr)
        limit = 4 * sends + 1024
        if depth >= 0:
            near = reached(roots[s], depth, limit, in_ptr, src, s, reach, queue)
        everywhere = depth < 0 or near > limit
        count = 0
        for q in range(begin, end):
            v = pair_node[q]
            pair_row[q], row[v] = row[v], pair_row[q]  # swapped back below
            seen[v] = s
            if everywhere or reach[v] == s:
                candidates[count] = v
                count += 1
        # whom affected nodes send to: from their side, or from that of the nodes within reach, whichever is shorter
        from_reach = not everywhere and links_of(queue, 0, near, in_ptr) < sends
        if from_reach and not keep:
            before = count
            for c in range(near):
                w = queue[c]
                if seen[w] != s:
                    for p in range(in_ptr[w], in_ptr[w + 1]):
                        if seen[src[p]] == s:
                            candidates[count] = w
                            count += 1
                            break
            for c in range(before, count):  # not while others are asked whether they read an affected node
                seen[candidates[c]] = s
        for q in range(edge_ptr[s], edge_ptr[s + 1]):
            e = edge[q]
            kind[e] = -1 if edge_value[q] < 0 else base_kind[e] + edge_value[q]
            if seen[dst[e]] != s and not keep and (everywhere or reach[dst[e]] == s):
                seen[dst[e]] = s
                candidates[count] = dst[e]
                count += 1
        if not keep and not from_reach:
            for q in range(begin, end):
                v = pair_node[q]
                for p in range(out_ptr[v], out_ptr[v + 1]):
                    w = out_dst[p]
                    if seen[w] != s and (everywhere or reach[w] == s):
                        seen[w] = s
                        candidates[count] = w
                        count += 1
        for h in range(hub_ptr[s], hub_ptr[s + 1]):
            change_of[hub_node[h]] = hub_change[h]
        messages = 0
        for c in range(count):
            change = change_of[candidates[c]]
            if change < 0 or change_row[change] < 0:
                messages += in_ptr[candidates[c] + 1] - in_ptr[candidates[c]]
        affordable = need[2] + messages <= need[3]
        room = affordable and (
            size[0] + count < len(hashes) and size[1] + messages <= len(stored) and next_ptr[s] + count <= len(next_node)
        )
        if room:
            need[2] += messages
            total = next_ptr[s]
            for c in range(count):
                v = candidates[c]
                own = row[v]
                if own < 0:
                    next_node[total] = v
                    next_row[total] = -1
                    total += 1
                    continue
                change = change_of[v]
                new = change_row[change] if change >= 0 else -1
                if new < 0:
                    length = 0
                    hub = in_ptr[v + 1] - in_ptr[v] > HUB
                    for p in range(in_ptr[v], in_ptr[v + 1]):
                        e = order[p] if hub else p
                        r = row[src[e]]
                        if r >= 0 and kind[e] >= 0 and (not keep or seen[src[e]] == s):
                            items[length] = pack(r, kind[e])
                            length += 1
                    sort_items(items, length)
                    new = intern(own, items, length, slots, hashes, heads, stored, size)
                    if change >= 0:
                        change_row[change] = new
                if keep or new != base[v]:
                    next_node[total] = v
                    next_row[total] = new
                    total += 1
            next_ptr[s + 1] = total
        else:
            need[0], need[1] = count if affordable else -1, messages
            for c in range(count):  # the stamps of this attempt, for the next
                seen[candidates[c]] = -1
            for c in range(near):
                reach[queue[c]] = -1
        for h in range(hub_ptr[s], hub_ptr[s + 1]):
            change_of[hub_node[h]] = -1
        swap_rows(pair_node, pair_row, begin, end, row)
        restore_kinds(edge, edge_ptr[s], edge_ptr[s + 1], base_kind, kind)
        if not room:
            return s
    return last


@njit(cache=True, nogil=True)
def root_rows(roots, base, pair_ptr, pair_node, pair_row, result):
    """The row of every subgraph's roots; -1 where it has none."""
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


@njit(cache=True, nogil=True)
def deltas(
    first, last, keeps, base, pair_ptr, pair_node, pair_row, items, slots, hashes, heads, stored, size, result
):  # fmt: skip
    """What a subgraph's pool has more (or less) than its graph's: distinct lists of (row, net count).

    For a subgraph that keeps nodes, its whole pool. A base row below 0 is in no pool, so nothing takes it away again.
    """
    for s in range(first, last):
        begin, end = pair_ptr[s], pair_ptr[s + 1]
        if size[0] + 1 >= len(hashes) or size[1] + 2 * (end - begin) > len(stored):
            return s
        length = 0
        for q in range(begin, end):
            if not keeps[s] and base[pair_node[q]] >= 0:
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
        result[s] = intern(0, items, kept, slots, hashes, heads, stored, size)
    return last
