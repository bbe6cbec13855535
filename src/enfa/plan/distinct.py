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
from enfa.plan.intern import KeyTable, packed
from enfa.plan.kernels.walk import count_rows
from enfa.plan.spec import Spec
from enfa.plan.steps.builder import Builder

__all__ = ["DistinctLayer", "DistinctRows", "distinct_rows_of"]


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


class _Layers:
    """Carries the rows of pairs from layer to layer."""

    def __init__(self, graphs: GraphSet, edits: Edits, spec: Spec, kind: np.ndarray) -> None:
        self.graphs, self.edits, self.spec = graphs, edits, spec
        self.builder, self.start = Builder(graphs, edits), KeyTable()
        self.pairs = self.builder.start(kind, spec.degrees, self.start)

    def conv(self, depth: int = -1) -> KeyTable:
        """One message-passing layer. ``depth`` is that of :func:`~enfa.plan.kernels.walk.walk`."""
        table = KeyTable()
        self.pairs = self.builder.over_subgraphs(self.pairs, self.spec.edge_attr, table, depth)
        return table

    def context(self) -> tuple[KeyTable, KeyTable | None, np.ndarray]:
        """The contexts of all nodes, encoded on the original graph."""
        g, contexts = self.graphs, KeyTable()
        # an encoder that reads degrees reads the original graph's, which the rows over the bag need not tell
        own = np.diff(g.in_ptr) if self.spec.degrees and self.spec.context_encoder else np.zeros(g.num_nodes, np.int32)
        of_node = self.pairs.across(g, self.edits, own, contexts)
        if not self.spec.context_encoder:
            return contexts, None, of_node
        encoder = KeyTable()
        return contexts, encoder, self.builder.over_graphs(of_node, self.builder.edge_kinds(self.spec.edge_attr), encoder)

    def mix(self, of_node: np.ndarray) -> KeyTable:
        """Rows that see their node's context: (row, context) pairs. Base rows that count nothing are left out later."""
        table, pairs = KeyTable(), self.pairs
        present = pairs.row >= 0
        own = np.concatenate([pairs.base, pairs.row[present]])
        seen = np.concatenate([of_node, of_node[pairs.node[present]]])
        new = table.add(own, np.arange(len(own) + 1), packed(seen, np.zeros_like(seen)))
        pairs.row[present] = new[len(pairs.base) :]
        pairs.base = new[: len(pairs.base)]
        return table

    def base_pools(self) -> tuple[np.ndarray, np.ndarray]:
        """Of every graph the base rows that count, one for each node that has one: where they begin, and the rows."""
        counts = self.pairs.unlisted(self.graphs, self.edits) > 0
        if self.spec.pruned:  # pools nothing
            counts[:] = False
        return np.concatenate([[0], np.cumsum(counts)])[self.graphs.node_ptr], self.pairs.base[counts]

    def rows_per_graph(self, table: KeyTable) -> np.ndarray:
        """int64 [G]: how many rows of the table just made each graph has."""
        result, pairs = np.zeros(self.graphs.num_graphs, np.int64), self.pairs
        last = np.full(len(table), -1, np.int32)
        count_rows(*self.base_pools(), self.edits.sub_ptr, pairs.ptr, pairs.row, last, result)
        return result

    def pools(self) -> tuple[KeyTable, np.ndarray]:
        table, pairs = KeyTable(), self.pairs
        if self.spec.pruned:  # nobody pools: one empty delta for all
            table.add(np.zeros(1, np.int32), np.zeros(2, np.int64), np.zeros(0, np.int64))
            return table, np.zeros(self.edits.num_subgraphs, np.int32)
        return table, pairs.deltas(np.where(pairs.unlisted(self.graphs, self.edits) > 0, pairs.base, -1), table)


def distinct_rows_of(graphs: GraphSet, edits: Edits, spec: Spec, kind: np.ndarray) -> DistinctRows:
    """Enumerate and number the distinct rows of some graphs. ``kind[N]`` is from ``start_kinds``."""
    builder = _Layers(graphs, edits, spec, kind)
    layers, affected, graph_rows, node_context = [], [], [], []
    for i in range(1, spec.num_layers + 1):
        layer_context = builder.context() if spec.context == "input" else None
        layer = DistinctLayer(builder.conv(spec.num_layers - i if spec.pruned else -1))
        affected.append(int((builder.pairs.row >= 0).sum()))
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
        rows.sub_root = builder.pairs.at(builder.builder.roots)
    elif spec.output == "node":
        rows.nodes = KeyTable()
        rows.node_sum = builder.pairs.across(graphs, edits, np.zeros(graphs.num_nodes, np.int32), rows.nodes)
    return rows
