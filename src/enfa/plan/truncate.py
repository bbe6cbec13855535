"""The distinct rows of fewer layers: they are there already.

What the rows of table i are does not depend on how many tables follow. Only the readout does: following ``own``
downwards gives each row's number in an earlier table, and a pool's list of (row, net count) loses the rows that are not
affected so early, because there they cancel against their base rows.
"""

from __future__ import annotations

import numpy as np

from enfa.plan.distinct import DistinctLayer, DistinctRows
from enfa.plan.intern import KeyTable, packed
from enfa.plan.kernels.slice import coalesce

__all__ = ["first_layers"]


def _before(layer: DistinctLayer) -> np.ndarray:
    """int32: for each row of a layer's table the row of the same node one table earlier."""
    return layer.rows.own if layer.mix is None else layer.rows.own[layer.mix.own]


def first_layers(rows: DistinctRows, count: int) -> DistinctRows:
    """The rows that compiling for ``count`` layers would have given, in another order. Cost: one pass over the readout.

    A base row that no subgraph has in the last table is in no pool here either, though one might have it this early: pools
    are the same, written with longer deltas.
    """
    if not 1 <= count <= len(rows.layers):
        raise ValueError(f"Expected 1 to {len(rows.layers)} layers, as compiled, got {count}")
    row = np.arange(len(rows.layers[-1].table))
    for layer in reversed(rows.layers[count:]):
        row = _before(layer)[row]
    old = rows.deltas
    size = int(old.size[1])
    items = np.empty(int(np.diff(old.item_ptr).max(initial=0)), np.int64)
    ptr, new_row, new_count = np.zeros_like(old.item_ptr), np.empty(size, np.int64), np.empty(size, np.int64)
    end = coalesce(old.item_ptr, row[old.a], old.b, items, ptr, new_row, new_count)
    deltas = KeyTable()
    number = deltas.add(old.own, ptr, packed(new_row[:end], new_count[:end]))
    return DistinctRows(
        rows.start, rows.layers[:count], deltas, rows.base_ptr, row[rows.base_row].astype(np.int32), number[rows.sub_delta],
        rows.graph_rows[:count], rows.affected[:count], node_context=rows.node_context[:count],
    )  # fmt: skip
