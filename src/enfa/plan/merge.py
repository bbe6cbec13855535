"""Joining the distinct rows of two sets of graphs: each key is translated, then looked up."""

from __future__ import annotations

import numpy as np

from enfa.plan.distinct import DistinctLayer, DistinctRows
from enfa.plan.intern import renumbered

__all__ = ["merge_rows", "widen_kinds"]


def _merge_layer(
    into: DistinctLayer, new: DistinctLayer, before: np.ndarray, reads_input: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Merge one layer; ``before`` translates rows of the table before. Returns the translations of its table and contexts."""
    rows = into.rows.absorb(new.rows, before, before)
    if new.mix is None or new.context is None:
        return rows, None
    assert into.context is not None and into.mix is not None
    seen = into.context.absorb(new.context, item_map=before if reads_input else rows)
    if new.encoder is not None and into.encoder is not None:
        seen = into.encoder.absorb(new.encoder, seen, seen)
    return into.mix.absorb(new.mix, rows, seen), seen


def merge_rows(into: DistinctRows, new: DistinctRows, reads_input: bool) -> None:
    """Add the rows of ``new``, compiled with the same policy, spec and kinds, to ``into``.

    Cost: one look-up per distinct row of ``new``. The graphs of ``new`` come after those of ``into``.
    """
    row = into.start.absorb(new.start)
    for i, (mine, theirs) in enumerate(zip(into.layers, new.layers)):
        row, seen = _merge_layer(mine, theirs, row, reads_input)
        if seen is not None:
            into.node_context[i] = np.concatenate([into.node_context[i], seen[new.node_context[i]]])
    delta = into.deltas.absorb(new.deltas, item_map=row)
    into.base_ptr = np.concatenate([into.base_ptr, into.base_ptr[-1] + new.base_ptr[1:]])
    into.base_row = np.concatenate([into.base_row, row[new.base_row]])
    into.sub_delta = np.concatenate([into.sub_delta, delta[new.sub_delta]])
    into.graph_rows = np.concatenate([into.graph_rows, new.graph_rows], axis=1)  # the same rows, under other numbers
    if new.sub_root is not None and into.sub_root is not None:
        into.sub_root = np.concatenate([into.sub_root, renumbered(new.sub_root, row)])
    if new.nodes is not None and into.nodes is not None and new.node_sum is not None and into.node_sum is not None:
        sums = into.nodes.absorb(new.nodes, item_map=row)
        into.node_sum = np.concatenate([into.node_sum, sums[new.node_sum]])
    into.affected = [a + b for a, b in zip(into.affected, new.affected)]


def widen_kinds(rows: DistinctRows, marks: int, more: int) -> None:
    """Number edge kinds (attribute row, mark) for ``more`` marks where there were ``marks``, as expand.edge_tables does."""
    for layer in rows.layers:
        for table in (layer.rows, layer.encoder):
            if table is not None:
                table.replace_b(table.b // marks * more + table.b % marks)
