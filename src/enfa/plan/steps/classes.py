"""Which rows of a plan are the same row.

The distinct plan finds equal rows without ever writing all rows out. This goes the other way, for pictures and
tests: given any plan, number its rows so that equal ones get equal numbers. Cost: one table look-up per row, n squared
on the full plan.
"""

from __future__ import annotations

import numpy as np

from enfa.graphs.kinds import distinct_rows
from enfa.plan.intern import KeyTable, packed
from enfa.plan.steps.lists import written_out
from enfa.plan.steps.table import StepPlan
from enfa.plan.table import Sums

__all__ = ["row_classes"]


def _start(plan: StepPlan) -> np.ndarray:
    """Rows of table 0 differ in features, mark, degree or, where sharing ends at the graph, in the graph."""
    content = distinct_rows(plan.x_rows.detach().numpy())[0][plan.feature.numpy()]
    more = [t.numpy() for t in (plan.marked, plan.degrees, plan.of_graph) if t is not None]
    return distinct_rows(np.stack([content, *more], axis=1))[0]


def _multisets(before: np.ndarray, sums: Sums) -> np.ndarray:
    """The class of every list: rows of one class count together."""
    lists, size = len(sums.ptr) - 1, int(before.max(initial=0)) + 1
    of_list = np.repeat(np.arange(lists), np.diff(sums.ptr.numpy()))
    entry, place = np.unique(of_list * size + before[sums.row.numpy()], return_inverse=True)
    count = np.bincount(place.reshape(-1), sums.count.numpy(), len(entry)).astype(np.int64)
    ptr = np.searchsorted(entry // size, np.arange(lists + 1))
    return KeyTable().add(np.zeros(lists, np.int64), ptr, packed(entry % size, count))


def row_classes(plan: StepPlan) -> list[np.ndarray]:
    """For every step the class of every row, int [rows]: two rows of a table are equal if their classes are.

    On the distinct plan all classes differ. On the full plan row k is the k-th pair, node, subgraph or graph.
    """
    found: list[np.ndarray] = []
    for step, table in zip(plan.program.steps, plan.tables):
        read = [found[number] for number in step.reads]
        if step.op == "start":
            found.append(_start(plan))
        elif table.links is not None:
            own, ptr, row, edge = (t.numpy() for t in (
                table.links.self_row, table.links.in_ptr, table.links.in_row, table.links.in_edge
            ))  # fmt: skip
            found.append(KeyTable().add(read[0][own], ptr, packed(read[0][row], edge)))
        elif table.sums is not None:
            found.append(_multisets(read[0], written_out(table, len(read[0]))))
        elif table.own is not None:
            own = read[0][table.own.numpy()]
            other = np.zeros_like(own) if table.other is None else read[1][table.other.numpy()]
            found.append(KeyTable().add(own, np.arange(len(own) + 1), packed(other, np.zeros_like(other))))
    return found
