"""The distinct plan: every distinct row is computed once.

Two rows after layer i are the same row when their own rows after layer i-1 are, and the multisets of (incoming
row, edge kind) pairs too. Rows are therefore numbered by hash-consing, layer by layer: first every node of the
unedited graphs (its *base row*), then, subgraph by subgraph, only the nodes where an edit has arrived (its *affected*
rows). Cost: one table look-up per affected row and layer, which is all that is ever enumerated; never n squared.

Where the paper replaces rows beyond i hops from an edit by their base rows, this finds the rows that really differ,
and shares equal ones between subgraphs and graphs as well.

A base row that no subgraph has (in a complete graph, an edit has reached every node after one layer) *counts* nothing. It is
looked up, because the affected rows of the next table are found by comparing with it, and then left out: no pool, no context
and no row that counts reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from enfa.edits import Edits
from enfa.graphs import GraphSet
from enfa.plan import hubs
from enfa.plan.intern import KeyTable, packed
from enfa.plan.kernels.walk import base_rows, count_rows, deltas, root_rows, start_pairs, walk
from enfa.plan.spec import Spec

__all__ = ["Builder", "DistinctLayer", "DistinctRows", "distinct_rows_of", "start_kinds"]


@dataclass
class DistinctLayer:
    """The keys of one layer. Row numbers in ``rows`` and ``context`` refer to the table before (or to ``rows``)."""

    rows: KeyTable  # own row, (incoming row, edge kind)
    context: KeyTable | None = None  # degree or 0, (row, how many subgraphs of the bag)
    encoder: KeyTable | None = None  # own context, (incoming context, edge kind)
    mix: KeyTable | None = None  # row, (row of the encoded context, 0)

    @property
    def table(self) -> KeyTable:
        """The keys of the layer's final table."""
        return self.rows if self.mix is None else self.mix

    @property
    def tables(self) -> dict[str, KeyTable]:
        return {k: v for k, v in vars(self).items() if isinstance(v, KeyTable)}


@dataclass
class DistinctRows:
    """All distinct rows of a set of graphs, and where each graph and subgraph finds its own."""

    start: KeyTable  # kind, (mark, degree)
    layers: list[DistinctLayer]
    deltas: KeyTable  # (row of table L, net count): what a subgraph's pool has more than its graph's
    base_ptr: np.ndarray  # int64 [G+1], where the base pool of each graph begins
    base_row: np.ndarray  # int32, rows of table L: base rows of the nodes that some subgraph leaves unaffected
    sub_delta: np.ndarray  # int32 [S]
    graph_rows: np.ndarray  # int64 [L, G], rows that each graph alone needs, tables 1..L
    affected: list[int] = field(default_factory=list)  # looked-up rows, tables 1..L
    sub_root: np.ndarray | None = None  # int32 [S, roots], row of table L, -1 for none; only for spec.output "root"
    node_context: list[np.ndarray] = field(default_factory=list)  # int32 [N], layers 1..L: each node's encoded context
    nodes: KeyTable | None = None  # 0, (row of table L, how many subgraphs); only for spec.output "node"
    node_sum: np.ndarray | None = None  # int32 [N], row of ``nodes``


def start_kinds(graphs: GraphSet, share: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``(kind[N], feature[K], graph[K])``: table 0 tells nodes apart by feature row, and by graph if asked to."""
    if share == "dataset":
        count = len(graphs.x)
        return graphs.node_kind, np.arange(count), np.full(count, -1, np.int64)
    code = graphs.graph * max(len(graphs.x), 1) + graphs.node_kind
    values, kind = np.unique(code, return_inverse=True)
    return kind.reshape(-1), values % max(len(graphs.x), 1), values // max(len(graphs.x), 1)


class Builder:
    """Carries the base rows and the affected (node, row) pairs from table to table."""

    def __init__(self, graphs: GraphSet, edits: Edits, spec: Spec, kind: np.ndarray) -> None:
        self.graphs, self.edits, self.spec = graphs, edits, spec
        self.keeps = edits.kept
        self.roots = np.zeros((edits.num_subgraphs, 0), np.int64) if edits.root is None else edits.root
        # attribute row k with mark m is kind k * marks + m, as in expand.edge_tables
        self.kind = np.zeros(graphs.num_edges, np.int32)
        if spec.edge_attr:
            self.kind[:] = graphs.edge_kind * len(edits.edge_marks)
        # scratch for the kernels: the messages into one node, and the nodes of one graph
        self.items = np.empty(int(np.diff(graphs.in_ptr).max(initial=0)), np.int64)
        largest = int(np.diff(graphs.node_ptr).max(initial=0))
        self.candidates, self.queue = np.empty(largest, np.int64), np.empty(largest, np.int64)
        self.start = KeyTable()
        degree = np.diff(graphs.in_ptr) if spec.degrees else np.zeros(graphs.num_nodes, np.int64)
        one = np.arange(graphs.num_nodes + 1)
        self.base = self.start.add(kind, one, packed(np.zeros_like(degree), degree))
        room = len(edits.node) + len(edits.edge)
        if spec.degrees:  # everything that a deleted node sends to
            gone = edits.node[edits.node_value < 0]
            room += int((graphs.out_ptr[gone + 1] - graphs.out_ptr[gone]).sum())
        self.pair_ptr = np.zeros(edits.num_subgraphs + 1, np.int64)
        self.pair_node, self.pair_row = np.empty(room, np.int32), np.empty(room, np.int32)
        self.start.reserve(room, room)
        start_pairs(
            kind, self.base, spec.degrees, graphs.in_ptr, graphs.src, graphs.out_ptr, graphs.out_dst, graphs.dst,
            self.keeps, edits.node_ptr, edits.node, edits.node_value, edits.edge_ptr, edits.edge, edits.edge_value,
            *self.start.arrays, self.pair_ptr, self.pair_node, self.pair_row,
        )  # fmt: skip
        self.pair_node, self.pair_row = self.pair_node[: self.pair_ptr[-1]], self.pair_row[: self.pair_ptr[-1]]

    def conv(self, depth: int = -1) -> KeyTable:
        """One message-passing layer. ``depth`` is that of :func:`~enfa.plan.kernels.walk.walk`."""
        g, e, table = self.graphs, self.edits, KeyTable()
        if depth < 0:
            hubs.check_pairs(g, e, self.pair_ptr, self.pair_node)
        # where every subgraph lists all of its nodes, there are no base rows
        base = np.full_like(self.base, -1) if self.keeps.all() else self.over_graphs(table, self.base)
        seen, reach = np.full(g.num_nodes, -1, np.int64), np.full(g.num_nodes, -1, np.int64)
        kind, need = self.kind.copy(), np.array([0, 0, 0, hubs.LOOKED_AT])
        order = hubs.sorted_edges(g, self.base, self.kind)
        changes = hubs.changes(g, e, self.roots, depth, self.base, kind, self.pair_ptr, self.pair_node, self.pair_row)
        ptr = np.zeros_like(self.pair_ptr)
        node, row = (np.empty(2 * len(self.pair_node) + 1024, np.int32) for _ in range(2))
        done = 0
        while done < e.num_subgraphs:
            done = walk(
                done, e.num_subgraphs, self.keeps, self.roots, depth, self.base, base, seen, reach, g.in_ptr, g.src,
                order, kind, self.kind, g.out_ptr, g.out_dst, g.dst, e.edge_ptr, e.edge, e.edge_value, self.pair_ptr,
                self.pair_node, self.pair_row, self.items, self.candidates, self.queue, need, *changes,
                *table.arrays, ptr, node, row,
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
        self.base, self.pair_ptr = base, ptr
        self.pair_node, self.pair_row = node[: ptr[-1]].copy(), row[: ptr[-1]].copy()
        return table

    def over_graphs(self, table: KeyTable, row: np.ndarray) -> np.ndarray:
        """A layer over the unedited graphs: the row of every node from ``row``, its number in the table read."""
        g = self.graphs
        table.reserve(g.num_nodes, g.num_edges)
        result = np.empty(g.num_nodes, np.int32)
        base_rows(row, g.in_ptr, g.src, self.kind, self.items, *table.arrays, result)
        return result

    def unaffected(self) -> np.ndarray:
        """int64 [N]: in how many subgraphs a node has its base row."""
        g = self.graphs
        bag = np.bincount(self.edits.graph[~self.keeps], minlength=g.num_graphs)[g.graph]
        listed = self.pair_node
        if self.keeps.any():
            listed = listed[np.repeat(~self.keeps, np.diff(self.pair_ptr))]
        return bag - np.bincount(listed, minlength=g.num_nodes)

    def over_bag(self, own: np.ndarray, table: KeyTable | None = None) -> tuple[KeyTable, np.ndarray]:
        """For every node the multiset of its rows over the bag."""
        g, present, rest = self.graphs, self.pair_row >= 0, self.unaffected()
        pairs, count = np.unique(packed(self.pair_node[present], self.pair_row[present]), return_counts=True)
        node = np.concatenate([pairs >> 32, np.flatnonzero(rest)])
        row = np.concatenate([pairs & 0xFFFFFFFF, self.base[rest > 0]])
        count = np.concatenate([count, rest[rest > 0]])
        if self.keeps.any():  # these list base rows, too
            both, where = np.unique(packed(node, row), return_inverse=True)
            node, row, count = both >> 32, both & 0xFFFFFFFF, np.bincount(where, count, len(both)).astype(np.int64)
        order = np.argsort(node, kind="stable")
        ptr = np.concatenate([[0], np.cumsum(np.bincount(node, minlength=g.num_nodes))])
        table = KeyTable() if table is None else table
        return table, table.add(own, ptr, packed(row, count)[order])

    def context(self) -> tuple[KeyTable, KeyTable | None, np.ndarray]:
        """The contexts of all nodes, encoded on the original graph."""
        g = self.graphs
        # an encoder that reads degrees reads the original graph's, which the rows over the bag need not tell
        own = np.diff(g.in_ptr) if self.spec.degrees and self.spec.context_encoder else np.zeros(g.num_nodes, np.int32)
        contexts, of_node = self.over_bag(own)
        if not self.spec.context_encoder:
            return contexts, None, of_node
        encoder = KeyTable()
        return contexts, encoder, self.over_graphs(encoder, of_node)

    def mix(self, of_node: np.ndarray) -> KeyTable:
        """Rows that see their node's context: (row, context) pairs. Base rows that count nothing are left out later."""
        table, present = KeyTable(), self.pair_row >= 0
        own = np.concatenate([self.base, self.pair_row[present]])
        seen = np.concatenate([of_node, of_node[self.pair_node[present]]])
        new = table.add(own, np.arange(len(own) + 1), packed(seen, np.zeros_like(seen)))
        self.pair_row[present] = new[len(self.base) :]
        self.base = new[: len(self.base)]
        return table

    def base_pools(self) -> tuple[np.ndarray, np.ndarray]:
        """Of every graph the base rows that count, one for each node that has one: where they begin, and the rows."""
        counts = self.unaffected() > 0
        if self.spec.pruned:  # pools nothing
            counts[:] = False
        return np.concatenate([[0], np.cumsum(counts)])[self.graphs.node_ptr], self.base[counts]

    def rows_per_graph(self, table: KeyTable) -> np.ndarray:
        """int64 [G]: how many rows of the table just made each graph has."""
        result = np.zeros(self.graphs.num_graphs, np.int64)
        count_rows(
            *self.base_pools(), self.edits.sub_ptr, self.pair_ptr, self.pair_row, np.full(len(table), -1, np.int32), result,
        )  # fmt: skip
        return result

    def pools(self) -> tuple[KeyTable, np.ndarray]:
        table, count = KeyTable(), self.edits.num_subgraphs
        if self.spec.pruned:  # nobody pools: one empty delta for all
            table.add(np.zeros(1, np.int32), np.zeros(2, np.int64), np.zeros(0, np.int64))
            return table, np.zeros(count, np.int32)
        result, done = np.empty(count, np.int32), 0
        base = np.where(self.unaffected() > 0, self.base, -1)
        items = np.empty(2 * int(np.diff(self.pair_ptr).max(initial=0)), np.int64)
        while done < count:
            done = deltas(
                done, count, self.keeps, base, self.pair_ptr, self.pair_node, self.pair_row, items, *table.arrays,
                result,
            )
            if done < count:
                table.reserve(2, 2 * int(self.pair_ptr[done + 1] - self.pair_ptr[done]))
        return table, result

    def root_rows(self) -> np.ndarray:
        result = np.empty(self.roots.shape, np.int32)
        root_rows(self.roots, self.base, self.pair_ptr, self.pair_node, self.pair_row, result)
        return result


def distinct_rows_of(graphs: GraphSet, edits: Edits, spec: Spec, kind: np.ndarray) -> DistinctRows:
    """Enumerate and number the distinct rows of some graphs. ``kind[N]`` is from :func:`start_kinds`."""
    builder = Builder(graphs, edits, spec, kind)
    layers, affected, graph_rows, node_context = [], [], [], []
    for i in range(1, spec.num_layers + 1):
        layer_context = builder.context() if spec.context == "input" else None
        layer = DistinctLayer(builder.conv(spec.num_layers - i if spec.pruned else -1))
        affected.append(int((builder.pair_row >= 0).sum()))
        graph_rows.append(builder.rows_per_graph(layer.rows))
        if spec.context == "output":
            layer_context = builder.context()
        if layer_context is not None:
            layer.context, layer.encoder, of_node = layer_context
            layer.mix = builder.mix(of_node)
            node_context.append(of_node)
        layers.append(layer)
    pools, sub_delta = builder.pools()
    base = builder.base_pools()
    rows = DistinctRows(
        builder.start, layers, pools, *base, sub_delta, np.stack(graph_rows), affected, node_context=node_context
    )
    if spec.output == "root":
        rows.sub_root = builder.root_rows()
    elif spec.output == "node":
        rows.nodes, rows.node_sum = builder.over_bag(np.zeros(graphs.num_nodes, np.int32))
    return rows
