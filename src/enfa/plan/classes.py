"""Which rows of a plan are the same row.

The distinct plan finds equal rows without ever writing all rows out. This goes the other way, for pictures and
tests: given any plan, number its rows so that equal ones get equal numbers. Cost: one table look-up per row, n squared
on the full and ego plans.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from enfa.graphs.kinds import distinct_rows
from enfa.plan.intern import KeyTable, packed
from enfa.plan.table import Context, Links, Plan

__all__ = ["row_classes"]


def _start(plan: Plan) -> np.ndarray:
    """Rows of table 0 differ in features, mark, degree or, where sharing ends at the graph, in the graph."""
    content = distinct_rows(plan.x.detach().numpy())[0][plan.feature.numpy()]
    more = [t.numpy() for t in (plan.mark, plan.degree, plan.graph) if t is not None]
    return distinct_rows(np.stack([content, *more], axis=1))[0]


def _of_keys(own: np.ndarray, ptr: Tensor, a: np.ndarray, b: Tensor) -> np.ndarray:
    return KeyTable().add(own, ptr.numpy(), packed(a, b.numpy()))


def _over_links(before: np.ndarray, links: Links) -> np.ndarray:
    return _of_keys(before[links.self_row.numpy()], links.in_ptr, before[links.in_row.numpy()], links.in_edge)


def _contexts(read: np.ndarray, context: Context, degrees: bool) -> np.ndarray:
    own = np.zeros(len(context.sums.ptr) - 1, np.int64)
    if degrees and context.links is not None:  # the encoder reads the original graph's degrees
        own[context.links.self_row.numpy()] = context.links.in_ptr.diff().numpy()
    seen = _of_keys(own, context.sums.ptr, read[context.sums.row.numpy()], context.sums.count)
    return seen if context.links is None else _over_links(seen, context.links)


def row_classes(plan: Plan) -> list[np.ndarray]:
    """For tables 0…L the class of every row, int [rows]: two rows of a table are equal if their classes are.

    On the distinct plan all classes differ. On the full plan row k is the k-th (subgraph, node) pair; on the ego plan
    the nodes of the unedited graphs stand behind the pairs.
    """
    found = [_start(plan)]
    for layer in plan.layers:
        before = found[-1]
        conv = _over_links(before, layer.links)
        table = conv if layer.source is None else conv[layer.source.numpy()]
        if layer.context is not None and layer.context_row is not None:
            seen = _contexts(before if plan.spec.context == "input" else conv, layer.context, plan.spec.degrees)
            pairs = packed(seen[layer.context_row.numpy()], np.zeros(len(table), np.int64))
            table = KeyTable().add(table, np.arange(len(table) + 1), pairs)
        found.append(table)
    return found
