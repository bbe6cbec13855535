"""What pairs start with, and one round of messages: looked up for every node of the unedited graphs (its *base row*), then,
subgraph by subgraph, for the nodes where an edit has arrived (its *affected* rows).

Cost: one look-up per affected row and table, which is all that is ever enumerated; never n squared. A base row that no subgraph
has (in a complete graph, an edit has reached every node after one round) counts nothing. It is looked up, because the affected
rows of the next table are found by comparing with it, and left out of plans: no row that counts reads it.
"""

import numpy as np

from enfa.ahead import begin, ready
from enfa.edits import Edits
from enfa.graphs import GraphSet
from enfa.plan.keys.intern import KeyTable, packed
from enfa.plan.rows import hubs
from enfa.plan.rows._groups import Edges, Edited, Kinds, Reach, Scratch
from enfa.plan.rows._walk import base_rows, start_pairs, walk
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
        begin()
        ready("rows")  # the kernels
        self.graphs, self.edits = graphs, edits
        self.edited = Edited.of(edits)
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
        pairs = PairRows.with_room(base, room, e.kept)
        table.reserve(room, room)
        start_pairs(kind, degrees, Edges.of(g), self.edited, table.arrays, pairs)
        return pairs.cut()

    def over_graphs(self, row: np.ndarray, kind: np.ndarray, table: KeyTable) -> np.ndarray:
        """Messages over the unedited graphs: the row of every node from ``row``, its number in the table read."""
        g = self.graphs
        table.reserve(g.num_nodes, g.num_edges)
        result = np.empty(g.num_nodes, np.int32)
        base_rows(row, Edges.of(g), kind, self.items, table.arrays, result)
        return result

    def over_subgraphs(self, before: PairRows, edges: bool, table: KeyTable, depth: int) -> PairRows:
        """Messages within subgraphs. ``depth`` is that of :func:`~enfa.plan.rows._walk.walk`."""
        g, base_kind, edits = self.graphs, self.edge_kinds(edges), self.edited
        if not edges:  # edges that are only marked are not edited
            edits = edits._replace(edge_value=np.minimum(edits.edge_value, 0))
        if depth < 0:
            hubs.check_pairs(g, self.edits, before)
        # where every subgraph lists all of its nodes, there are no base rows
        base = np.full_like(before.base, -1) if before.complete.all() else self.over_graphs(before.base, base_kind, table)
        kinds, need, done = Kinds(base_kind.copy(), base_kind), np.array([0, 0, 0, hubs.LOOKED_AT]), 0
        within = Reach(self.roots, depth, np.full(g.num_nodes, -1), self.queue)
        given = Edges.of(g), kinds, edits
        changes = hubs.changes(g, *given, within, before, table.shared)
        scratch = Scratch(np.full(g.num_nodes, -1), self.items, self.candidates)
        after = PairRows.with_room(base, 2 * len(before.node) + 1024, before.complete)
        while done < len(before.complete):
            done = walk(done, *given, within, before, changes, scratch, need, table.arrays, after)
            if done < len(before.complete):
                used = int(after.ptr[done] + need[0])
                if need[0] < 0 or table.size[1] + need[1] > hubs.STORED:
                    raise hubs.too_many_messages(g, int(table.size[1] + need[1]), int(need[2]))
                if used > hubs.STORED:
                    raise hubs.too_many_pairs(g, used)
                table.reserve(int(need[0]) + 1, int(need[1]))
                if used > len(after.node):
                    after = after.grown(max(int(need[0]), len(after.node) // 2))
        after = after.cut()
        return after._replace(node=after.node.copy(), row=after.row.copy())
