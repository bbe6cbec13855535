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

from enfa.edits import Edits
from enfa.graphs import GraphSet
from enfa.report.bags._hops import ego_nets

__all__ = ["PivotHops", "pivot_hops"]


@dataclass(frozen=True)
class PivotHops:
    """The nodes of each subgraph within some hops of a pivot, nearest first."""

    ptr: np.ndarray  # int64 [S+1]
    node: np.ndarray  # int32
    hop: np.ndarray  # int16


def pivot_hops(graphs: GraphSet, edits: Edits, limit: int) -> PivotHops:
    """Breadth-first from the pivots of every subgraph, up to ``limit`` hops. Cost: the size of the ego nets."""
    nodes = np.diff(graphs.node_ptr)
    ptr = np.zeros(edits.num_subgraphs + 1, np.int64)
    room = 8 * edits.num_subgraphs + int(nodes.max(initial=0))
    found, hops = np.empty(room, np.int32), np.empty(room, np.int16)
    seen, gone = np.full(graphs.num_nodes, -1), np.full(graphs.num_edges, -1)
    done = 0
    while done < edits.num_subgraphs:
        done = ego_nets(
            done, limit, edits.graph, nodes, edits.kept, graphs.out_ptr, graphs.out_edge, graphs.dst, edits.node_ptr,
            edits.node, edits.node_value, edits.edge_ptr, edits.edge, edits.edge_value, seen, gone, ptr, found, hops,
        )  # fmt: skip
        if done < edits.num_subgraphs:
            extra = len(found) + int(nodes[edits.graph[done]])
            found = np.concatenate([found, np.empty(extra, np.int32)])
            hops = np.concatenate([hops, np.empty(extra, np.int16)])
    return PivotHops(ptr, found[: ptr[-1]], hops[: ptr[-1]])
