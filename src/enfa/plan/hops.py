"""Pivots and pivot hops: how far a row is from the nearest edit of its subgraph.

A *pivot* is a node whose first row, or whose list of incoming edges, an edit changes: a marked node, the target of a
deleted or marked edge, whatever a deleted node sent to. The *pivot hop* of node v in subgraph j is its distance from
the nearest pivot along the edges of the subgraph, in the direction of messages (the paper's phop). After i layers only
rows with pivot hop <= i can differ from their base row. Where a subgraph lists the nodes that it keeps, each of them
counts as a pivot.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from enfa.edits import Edits
from enfa.graphs import GraphSet

__all__ = ["PivotHops", "pivot_hops"]


@dataclass(frozen=True)
class PivotHops:
    """The nodes of each subgraph with pivot hop <= limit, nearest first. Serves any plan with fewer hops too."""

    limit: int
    ptr: np.ndarray  # int64 [S+1]
    node: np.ndarray  # int32
    hop: np.ndarray  # int16

    def within(self, limit: int) -> PivotHops:
        """The same, cut at a smaller limit, without walking the graphs again."""
        if limit > self.limit:
            raise ValueError(f"Expected at most {self.limit} hops, as computed, got {limit}")
        keep = self.hop <= limit
        before = np.concatenate([[0], np.cumsum(keep)])
        return PivotHops(limit, before[self.ptr], self.node[keep], self.hop[keep])


@njit(cache=True, nogil=True)
def _walk(
    first, limit, graph, graph_nodes, keeps, out_ptr, out_edge, dst, node_ptr, node, node_value, edge_ptr, edge,
    edge_value, seen, gone, ptr, found, hops,
):  # fmt: skip
    for s in range(first, len(graph)):
        if ptr[s] + graph_nodes[graph[s]] > len(found):
            return s
        begin = end = ptr[s]
        if keeps[s]:
            for q in range(node_ptr[s], node_ptr[s + 1]):
                found[end] = node[q]
                hops[end] = 0
                end += 1
            ptr[s + 1] = end
            continue
        for q in range(node_ptr[s], node_ptr[s + 1]):
            if node_value[q] < 0:
                seen[node[q]] = s  # not there: never reached
        for q in range(edge_ptr[s], edge_ptr[s + 1]):
            if edge_value[q] < 0:
                gone[edge[q]] = s
            if seen[dst[edge[q]]] != s:
                seen[dst[edge[q]]] = s
                found[end] = dst[edge[q]]
                end += 1
        for q in range(node_ptr[s], node_ptr[s + 1]):
            v = node[q]
            if node_value[q] > 0 and seen[v] != s:
                seen[v] = s
                found[end] = v
                end += 1
            elif node_value[q] < 0:
                for p in range(out_ptr[v], out_ptr[v + 1]):
                    w = dst[out_edge[p]]
                    if seen[w] != s:
                        seen[w] = s
                        found[end] = w
                        end += 1
        for q in range(begin, end):
            hops[q] = 0
        at = begin
        while at < end:
            if hops[at] < limit:
                v = found[at]
                for p in range(out_ptr[v], out_ptr[v + 1]):
                    w = dst[out_edge[p]]
                    if seen[w] != s and gone[out_edge[p]] != s:
                        seen[w] = s
                        found[end] = w
                        hops[end] = hops[at] + 1
                        end += 1
            at += 1
        ptr[s + 1] = end
    return len(graph)


def pivot_hops(graphs: GraphSet, edits: Edits, limit: int) -> PivotHops:
    """Breadth-first from the pivots of every subgraph. Cost: the size of the ego nets."""
    nodes = np.diff(graphs.node_ptr)
    ptr = np.zeros(edits.num_subgraphs + 1, np.int64)
    room = 8 * edits.num_subgraphs + int(nodes.max(initial=0))
    found, hops = np.empty(room, np.int32), np.empty(room, np.int16)
    seen, gone = np.full(graphs.num_nodes, -1), np.full(graphs.num_edges, -1)
    done = 0
    while done < edits.num_subgraphs:
        done = _walk(
            done, limit, edits.graph, nodes, edits.kept, graphs.out_ptr, graphs.out_edge, graphs.dst, edits.node_ptr,
            edits.node, edits.node_value, edits.edge_ptr, edits.edge, edits.edge_value, seen, gone, ptr, found, hops,
        )  # fmt: skip
        if done < edits.num_subgraphs:
            extra = len(found) + int(nodes[edits.graph[done]])
            found = np.concatenate([found, np.empty(extra, np.int32)])
            hops = np.concatenate([hops, np.empty(extra, np.int16)])
    return PivotHops(limit, ptr, found[: ptr[-1]], hops[: ptr[-1]])
