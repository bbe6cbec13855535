"""From the rows of one table to the keys of the next.

Kernels begin with the subgraph ``first`` and stop early, returning the next one to do, when the table (or the list of pairs)
might be too small for it; the caller makes room and calls again.
"""

import numpy as np

from enfa.cache import numba_kernel
from enfa.plan.keys._intern import Keys, intern, pack, sort_items
from enfa.plan.rows._groups import Edges, Edited, Hubs, Kinds, Reach, Scratch

__all__ = ["HUB", "base_rows", "links_of", "reached", "restore_kinds", "start_pairs", "swap_rows", "walk"]

HUB = 64  # in-degree from which the order of a node's edges is kept


@numba_kernel
def base_rows(row, edges: Edges, kind, items, keys: Keys, result):
    """Rows of the unedited graphs: ``result[v]`` for every node v from ``row``, its number one table before."""
    in_ptr, src = edges.in_ptr, edges.src
    for v in range(len(row)):
        begin, end = in_ptr[v], in_ptr[v + 1]
        for p in range(begin, end):
            items[p - begin] = pack(row[src[p]], kind[p])
        sort_items(items, end - begin)
        result[v] = intern(np.int64(row[v]), items, end - begin, keys)


@numba_kernel
def start_pairs(start_kind, degrees, edges: Edges, edits: Edited, keys: Keys, pairs):
    """Affected rows of table 0: edited nodes, and with ``degrees`` nodes whose in-degree changed.

    A subgraph that keeps nodes has a pair for each of them, whether its row is the base row or not. ``pairs``
    (:class:`~enfa.plan.rows.pairs.PairRows`) has base rows, and room for every pair.
    """
    in_ptr, src, dst, out_ptr, out_dst = edges
    node_ptr, node, node_value, edge_ptr, edge, edge_value = edits
    base, pair_ptr, pair_node, pair_row, keeps = pairs
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
                row = intern(np.int64(start_kind[v]), items, np.int64(1), keys)
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


@numba_kernel
def links_of(nodes, begin, end, ptr):
    """How many edges some nodes have."""
    total = 0
    for i in range(begin, end):
        total += ptr[nodes[i] + 1] - ptr[nodes[i]]
    return total


@numba_kernel
def reached(s, within: Reach, limit, edges: Edges):
    """Stamp the nodes that matter to a subgraph; returns how many stand in the queue.

    Gives up where they are more than ``limit``, and returns more than that.
    """
    roots, reach, queue, stamp = within.roots[s], within.stamp, within.queue, s
    in_ptr, src = edges.in_ptr, edges.src
    end = 0
    for i in range(len(roots)):
        if roots[i] >= 0 and reach[roots[i]] != stamp:
            reach[roots[i]] = stamp
            queue[end] = roots[i]
            end += 1
    at = 0
    for _ in range(within.depth):
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


@numba_kernel
def swap_rows(pairs, s):
    """Exchange the base rows of the nodes that a subgraph lists with its own; once more undoes it."""
    for q in range(pairs.ptr[s], pairs.ptr[s + 1]):
        v = pairs.node[q]
        pairs.row[q], pairs.base[v] = pairs.base[v], pairs.row[q]


@numba_kernel
def restore_kinds(edits: Edited, s, kinds: Kinds):
    for q in range(edits.edge_ptr[s], edits.edge_ptr[s + 1]):
        kinds.now[edits.edge[q]] = kinds.base[edits.edge[q]]


@numba_kernel
def walk(
    first, edges: Edges, kinds: Kinds, edits: Edited, within: Reach, before, hubs: Hubs, scratch: Scratch, need, keys: Keys,
    after,
):  # fmt: skip
    """One layer: from the affected (node, row) pairs of table i-1, ``before``, to those of table i.

    Both are :class:`~enfa.plan.rows.pairs.PairRows`; base rows of ``before`` are overwritten for one subgraph at a time and
    restored. Candidates are the affected nodes, whatever they send to, and the targets of edited edges; one whose key turns out
    to be its base row is dropped again. A complete subgraph has the nodes that it lists as candidates and no others, and drops
    none. Nodes that do not matter (``within``) are no candidates: no root will ever read them. (Where far more matter than can
    be affected, that is not looked into.)

    Where there is no room for a subgraph, ``need[0]`` and ``need[1]`` say how many rows and items it may add; ``need[2]`` adds
    up the messages looked at, and where they would pass ``need[3]``, ``need[0]`` is -1.
    """
    in_ptr, src, dst, out_ptr, out_dst = edges
    kind, base_kind = kinds
    edge_ptr, edge, edge_value = edits.edge_ptr, edits.edge, edits.edge_value
    row, pair_ptr, pair_node, pair_row, keeps = before
    base, next_ptr, next_node, next_row, _ = after
    reach, queue, depth = within.stamp, within.queue, within.depth
    seen, items, candidates = scratch
    order, hub_ptr, hub_node, hub_change, change_row, change_of = hubs
    for s in range(first, len(pair_ptr) - 1):
        begin, end = pair_ptr[s], pair_ptr[s + 1]
        keep, near, sends = keeps[s], 0, links_of(pair_node, begin, end, out_ptr)
        limit = 4 * sends + 1024
        if depth >= 0:
            near = reached(s, within, limit, edges)
        everywhere = depth < 0 or near > limit
        count = 0
        for q in range(begin, end):
            v = pair_node[q]
            pair_row[q], row[v] = row[v], pair_row[q]  # swapped back below
            seen[v] = s
            if everywhere or reach[v] == s:
                candidates[count] = v
                count += 1
        # the nodes that affected ones send to: from their side, or from that of the nodes within reach, whichever is shorter
        from_reach = not everywhere and links_of(queue, np.int64(0), near, in_ptr) < sends
        if from_reach and not keep:
            so_far = count
            for c in range(near):
                w = queue[c]
                if seen[w] != s:
                    for p in range(in_ptr[w], in_ptr[w + 1]):
                        if seen[src[p]] == s:
                            candidates[count] = w
                            count += 1
                            break
            for c in range(so_far, count):  # not while others are asked whether they read an affected node
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
            keys.size[0] + count < len(keys.hashes)
            and keys.size[1] + messages <= len(keys.stored)
            and next_ptr[s] + count <= len(next_node)
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
                    sort_items(items, np.int64(length))
                    new = intern(np.int64(own), items, np.int64(length), keys)
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
        swap_rows(before, s)
        restore_kinds(edits, s, kinds)
        if not room:
            return s
    return len(pair_ptr) - 1
