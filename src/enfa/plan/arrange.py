"""Rows that are used together are numbered together.

Compiling numbers the rows of a table as it meets them, by chunks of graphs, unedited graphs first. A batch reads rows
graph by graph, from table L downwards. Numbered in that order, the rows of a graph that no earlier one has lie side by
side in every table: slices find them in fewer places of the memory, and the differences that a file stores are smaller.
Rows that many graphs use come first, so that nothing stands between those of one graph, or of two (``enfa.plan.runs``).
"""

from __future__ import annotations

import numpy as np

from enfa.plan.distinct import DistinctLayer, DistinctRows
from enfa.plan.intern import renumbered
from enfa.plan.kernels.arrange import meet_graphs
from enfa.plan.runs import mates_of, owners_of
from enfa.plan.steps.arrange import Arranger, Order

__all__ = ["arrange"]

_NONE = np.zeros(0, np.int32)


class _Layers(Arranger):
    def layer(
        self, layer: DistinctLayer, of_node: np.ndarray, table: Order, before: Order, reads_input: bool
    ) -> np.ndarray:
        """``of_node``: each node's encoded context, where there are any; returns their new numbers."""
        rows = table
        if layer.mix is not None:
            assert layer.context is not None
            rows, contexts = Order(layer.rows), Order(layer.context)
            encoded = contexts if layer.encoder is None else Order(layer.encoder)
            self.take(table, rows, encoded)
            of_node = encoded.wanted.add(of_node)
            if layer.encoder is not None:
                self.take(encoded, contexts, contexts)
            self.take(contexts, None, before if reads_input else rows)
        self.take(rows, before, before)
        return of_node


def arrange(rows: DistinctRows, sub_ptr: np.ndarray, reads_input: bool) -> None:
    """Number the rows of all tables anew, in place, and leave out those that count nothing. Cost: some passes over the tables.

    ``sub_ptr[G+1]`` tells the bags apart; ``reads_input`` is ``spec.context == "input"``.
    """
    of_deltas: np.ndarray | None = None
    owners: list[np.ndarray | None] = [None] * (len(rows.layers) + 1)
    if rows.layers[-1].mix is None:
        of_deltas, owners[:] = owners_of(rows, sub_ptr, mates_of(rows, sub_ptr))
    top, arranger = Order(rows.layers[-1].table, owners[-1]), _Layers()
    ids = np.empty(len(rows.base_row) + int(rows.deltas.size[1]), np.int32)
    seen = np.zeros(len(rows.deltas), bool)
    deltas = rows.deltas.heads, rows.deltas.items
    met = meet_graphs(rows.base_ptr, rows.base_row, sub_ptr, rows.sub_delta, *deltas, seen, ids)
    top.wanted.add(ids[:met])
    if rows.sub_root is not None:
        top.wanted.add(rows.sub_root[rows.sub_root >= 0])
    # pools are met in the order that they have, which is that of the subgraphs; then deltas, too, are put by owner
    pools = Order(rows.deltas, of_deltas)
    pools.wanted.add(np.arange(len(rows.deltas), dtype=np.int32))
    arranger.take(pools, None, top)
    if rows.nodes is not None:
        nodes = Order(rows.nodes)
        nodes.wanted.add(np.arange(len(rows.nodes), dtype=np.int32))
        arranger.take(nodes, None, top)
    order, contexts = top, rows.node_context or [_NONE] * len(rows.layers)
    for i in reversed(range(len(rows.layers))):
        before = Order(rows.layers[i - 1].table if i else rows.start, owners[i])
        contexts[i] = arranger.layer(rows.layers[i], contexts[i], order, before, reads_input)
        order = before
    arranger.take(order, None, None)
    arranger.join()
    rows.base_row = top.number[rows.base_row]
    rows.sub_delta = pools.number[rows.sub_delta]
    if rows.sub_root is not None:
        rows.sub_root = renumbered(rows.sub_root, top.number)
