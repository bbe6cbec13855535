"""What pairs start with, and one round of messages: looked up for every node of the unedited graphs (its *base row*), then,
subgraph by subgraph, for the nodes where an edit has arrived (its *affected* rows).

Cost: one look-up per affected row and table, which is all that is ever enumerated; never n squared. A base row that no subgraph
has (in a complete graph, an edit has reached every node after one round) counts nothing. It is looked up, because the affected
rows of the next table are found by comparing with it, and left out of plans: no row that counts reads it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from enfa.edits import Edits
from enfa.graphs import GraphSet
from enfa.plan.rows import hubs
from enfa.plan.rows._walk import base_rows, start_pairs, walk
from enfa.plan.rows.intern import KeyTable, packed
from enfa.plan.rows.pairs import PairRows

__all__ = ["Builder", "start_kinds"]


def start_kinds(graphs: GraphSet, share: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``(kind[N], feature[K], graph[K])``: table 0 tells nodes apart by feature row, and by graph if asked to."""
    if share == "dataset":
        count = len(graphs.x)
        return graphs.node_kind, np.arange(count), np.full(count, -1, np.int64)
    code = graphs.graph * max(len(graphs.x), 1) + graphs.node_kind
    values, kind = np.unique(code, return_inverse=True)
    return kind.reshape(-1), values % max(len(graphs.x), 1), values // max(len(graphs.x), 1)


class Builder:
    """Looks rows up in tables of keys. Holds scratch for the kernels: the messages into one node, the nodes of one graph."""

    def __init__(self, graphs: GraphSet, edits: Edits) -> None:
        self.graphs, self.edits = graphs, edits
        self.roots = np.zeros((edits.num_subgraphs, 0), np.int64) if edits.root is None else edits.root
        self.items = np.empty(int(np.diff(graphs.in_ptr).max(initial=0)), np.int64)
        largest = int(np.diff(graphs.node_ptr).max(initial=0))
        self.candidates, self.queue = np.empty(largest, np.int64), np.empty(largest, np.int64)

    def edge_kinds(self, edges: bool) -> np.ndarray:
        """As in expand.edge_tables: attribute row k with mark m is kind k * marks + m."""
        kind = np.zeros(self.graphs.num_edges, np.int32)
        if edges:
            kind[:] = self.graphs.edge_kind * len(self.edits.edge_marks)
        return kind

    def start(self, kind: np.ndarray, degrees: bool, table: KeyTable) -> PairRows:
        """Keys (kind, (mark, in-degree or 0)); ``kind`` is from :func:`start_kinds`."""
        g, e = self.graphs, self.edits
        degree = np.diff(g.in_ptr) if degrees else np.zeros(g.num_nodes, np.int64)
        base = table.add(kind, np.arange(g.num_nodes + 1), packed(np.zeros_like(degree), degree))
        room = len(e.node) + len(e.edge)
        if degrees:  # everything that a deleted node sends to
            gone = e.node[e.node_value < 0]
            room += int((g.out_ptr[gone + 1] - g.out_ptr[gone]).sum())
        ptr, node, row = np.zeros(e.num_subgraphs + 1, np.int64), np.empty(room, np.int32), np.empty(room, np.int32)
        table.reserve(room, room)
        start_pairs(
            kind, base, degrees, g.in_ptr, g.src, g.out_ptr, g.out_dst, g.dst,
            e.kept, e.node_ptr, e.node, e.node_value, e.edge_ptr, e.edge, e.edge_value, *table.arrays, ptr, node, row,
        )  # fmt: skip
        return PairRows(base, ptr, node[: ptr[-1]], row[: ptr[-1]], e.kept)

    def over_graphs(self, row: np.ndarray, kind: np.ndarray, table: KeyTable) -> np.ndarray:
        """Messages over the unedited graphs: the row of every node from ``row``, its number in the table read."""
        g = self.graphs
        table.reserve(g.num_nodes, g.num_edges)
        result = np.empty(g.num_nodes, np.int32)
        base_rows(row, g.in_ptr, g.src, kind, self.items, *table.arrays, result)
        return result

    def over_subgraphs(self, before: PairRows, edges: bool, table: KeyTable, depth: int = -1) -> PairRows:
        """Messages within subgraphs. ``depth`` is that of :func:`~enfa.plan.rows._walk.walk`."""
        g, e, base_kind = self.graphs, replace(self.edits, keeps=before.complete), self.edge_kinds(edges)
        if not edges:  # edges that are only marked are not edited
            e = replace(e, edge_value=np.minimum(e.edge_value, 0))
        if depth < 0:
            hubs.check_pairs(g, e, before.ptr, before.node)
        # where every subgraph lists all of its nodes, there are no base rows
        base = np.full_like(before.base, -1) if before.complete.all() else self.over_graphs(before.base, base_kind, table)
        seen, reach = np.full(g.num_nodes, -1, np.int64), np.full(g.num_nodes, -1, np.int64)
        kind, need = base_kind.copy(), np.array([0, 0, 0, hubs.LOOKED_AT])
        order = hubs.sorted_edges(g, before.base, base_kind)
        listed = before.ptr, before.node, before.row
        changes = hubs.changes(g, e, self.roots, depth, before.base, kind, *listed, table.shared)
        ptr, done = np.zeros_like(before.ptr), 0
        node, row = (np.empty(2 * len(before.node) + 1024, np.int32) for _ in range(2))
        while done < e.num_subgraphs:
            done = walk(
                done, e.num_subgraphs, before.complete, self.roots, depth, before.base, base, seen, reach, g.in_ptr, g.src,
                order, kind, base_kind, g.out_ptr, g.out_dst, g.dst, e.edge_ptr, e.edge, e.edge_value, *listed,
                self.items, self.candidates, self.queue, need, *changes, *table.arrays, ptr, node, row,
            )  # fmt: skip
            if done < e.num_subgraphs:
                if need[0] < 0 or table.size[1] + need[1] > hubs.STORED:
                    raise hubs.too_many_messages(g, int(table.size[1] + need[1]), int(need[2]))
                if ptr[done] + need[0] > hubs.STORED:
                    raise hubs.too_many_pairs(g, int(ptr[done] + need[0]))
                table.reserve(int(need[0]) + 1, int(need[1]))
                if ptr[done] + need[0] > len(node):
                    extra = max(int(need[0]), len(node) // 2)
                    node, row = (np.concatenate([a, np.empty(extra, np.int32)]) for a in (node, row))
        return PairRows(base, ptr, node[: ptr[-1]].copy(), row[: ptr[-1]].copy(), before.complete)
