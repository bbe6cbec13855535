"""Pivots and pivot hops: how far a row is from the nearest edit of its subgraph.

A *pivot* is a node whose first row, or whose list of incoming edges, an edit changes: a marked node, the target of a
deleted or marked edge, whatever a deleted node sent to. The *pivot hop* of node v in subgraph j is its distance from
the nearest pivot along the edges of the subgraph, in the direction of messages (the paper's phop). After i layers only
rows with pivot hop <= i can differ from their base row. Where a subgraph lists the nodes that it keeps, each of them
counts as a pivot.
"""

from typing import NamedTuple

import numpy as np

from enfa.cache import numba_kernel
from enfa.plan.rows._groups import Edges, Edited

__all__ = ["Scratch", "count_by_hop", "ego_net"]


class Scratch(NamedTuple):
    """Stamps are -1, then the subgraph that last met a node or edge."""

    seen: np.ndarray  # int64 [N]: found, or deleted
    near: np.ndarray  # int64 [N]: found
    hop_of: np.ndarray  # int64 [N]
    gone: np.ndarray  # int64 [E]: deleted
    found: np.ndarray  # int64 [N]
    hops: np.ndarray  # int64 [N]

    @staticmethod
    def of(nodes: int, edges: int) -> "Scratch":
        return Scratch(*(np.full(count, -1) for count in (nodes, nodes, nodes, edges, nodes, nodes)))


@numba_kernel(inline="always")
def _reach(v, hop, s, scratch, end):
    if scratch.seen[v] != s:
        scratch.seen[v] = s
        scratch.found[end] = v
        scratch.hops[end] = hop
        end += 1
    return end


@numba_kernel
def ego_net(s, limit, keeps, edges: Edges, out_edge, edits: Edited, scratch: Scratch):
    """Breadth-first from the pivots of subgraph s: nodes within ``limit`` hops, nearest first; returns how many there are.

    A subgraph that keeps nodes consists of these alone, all at hop 0.
    """
    node_ptr, node, node_value, edge_ptr, edge, edge_value = edits
    out_ptr, out_dst = edges.out_ptr, edges.out_dst
    end = 0
    for q in range(edge_ptr[s], edge_ptr[s + 1]):
        if edge_value[q] < 0:
            scratch.gone[edge[q]] = s
    if keeps[s]:
        for q in range(node_ptr[s], node_ptr[s + 1]):
            end = _reach(node[q], 0, s, scratch, end)
        return end
    for q in range(node_ptr[s], node_ptr[s + 1]):
        if node_value[q] < 0:
            scratch.seen[node[q]] = s  # not there: never reached
    for q in range(edge_ptr[s], edge_ptr[s + 1]):
        end = _reach(edges.dst[edge[q]], 0, s, scratch, end)
    for q in range(node_ptr[s], node_ptr[s + 1]):
        if node_value[q] > 0:
            end = _reach(node[q], 0, s, scratch, end)
        elif node_value[q] < 0:
            for p in range(out_ptr[node[q]], out_ptr[node[q] + 1]):
                end = _reach(out_dst[p], 0, s, scratch, end)
    at = 0
    while at < end:
        v, hop = scratch.found[at], scratch.hops[at]
        if hop < limit:
            for p in range(out_ptr[v], out_ptr[v + 1]):
                if scratch.gone[out_edge[p]] != s:
                    end = _reach(out_dst[p], hop + 1, s, scratch, end)
        at += 1
    return end


@numba_kernel
def count_by_hop(keeps, graph_edges, edges: Edges, out_edge, edits: Edited, scratch: Scratch, rows, within):
    """``rows[h]`` nodes have pivot hop h, ``within[h]`` edges have h as the larger hop of their two ends.

    ``graph_edges[s]``: edges of the graph of a subgraph. Returns how many edges are left in all subgraphs.
    """
    _, near, hop_of, gone, found, hops = scratch
    in_ptr, src, out_ptr = edges.in_ptr, edges.src, edges.out_ptr
    total = 0
    for s in range(len(keeps)):
        count = ego_net(s, len(rows) - 1, keeps, edges, out_edge, edits, scratch)
        for c in range(count):
            near[found[c]] = s
            hop_of[found[c]] = hops[c]
            rows[hops[c]] += 1
        inside = 0
        for c in range(count):
            for p in range(in_ptr[found[c]], in_ptr[found[c] + 1]):
                if near[src[p]] == s and gone[p] != s:
                    within[max(hops[c], hop_of[src[p]])] += 1
                    inside += 1
        if keeps[s]:  # only edges between the nodes that it lists
            total += inside
            continue
        total += graph_edges[s]
        for q in range(edits.edge_ptr[s], edits.edge_ptr[s + 1]):
            total -= edits.edge_value[q] < 0
        for q in range(edits.node_ptr[s], edits.node_ptr[s + 1]):
            v = edits.node[q]
            if edits.node_value[q] < 0:
                for p in range(in_ptr[v], in_ptr[v + 1]):
                    total -= gone[p] != s
                    gone[p] = s
                for p in range(out_ptr[v], out_ptr[v + 1]):
                    total -= gone[out_edge[p]] != s
                    gone[out_edge[p]] = s
    return total
