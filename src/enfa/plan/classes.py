"""Which rows of a plan are the same row.

The distinct plan finds equal rows without ever writing all rows out. This goes the other way, for pictures and tests: given any
plan, number the rows of every table so that equal ones get equal numbers. Cost: one look-up per row, n squared on a full plan.
"""

import numpy as np

from enfa.graphs.kinds import distinct_rows
from enfa.plan.derived.lists import written_out
from enfa.plan.keys.intern import KeyTable, packed
from enfa.plan.table import Plan

__all__ = ["step_classes"]


def _start(plan: Plan) -> np.ndarray:
    """Rows of the first table differ in features, mark, degree or, where sharing ends at the graph, in the graph."""
    content = distinct_rows(plan.x_rows.detach().numpy())[0][plan.feature.numpy()]
    more = [t.numpy() for t in (plan.marked, plan.degrees, plan.of_graph) if t is not None]
    return distinct_rows(np.stack([content, *more], axis=1))[0]


def _listed(read: np.ndarray, ptr: np.ndarray, row: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Of multisets of rows. Lists may name several rows of one class, so classes are counted first."""
    lists = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    both, where = np.unique(packed(lists, read[row]), return_inverse=True)
    total = np.bincount(where, count, len(both)).astype(np.int64)
    ends = np.searchsorted(both >> 32, np.arange(len(ptr)))
    return KeyTable().add(np.zeros(len(ptr) - 1, np.int32), ends, packed(both & 0xFFFFFFFF, total))


def step_classes(plan: Plan) -> list[np.ndarray]:
    """For every step the class of every row, int [rows]: two rows of a table are equal if their classes are.

    On the distinct plan all classes of a table differ, up to pools of pairs: these may be found by different changes of the
    pools of two graphs, and are told apart then. On a full plan row k is the k-th pair, node, subgraph or graph.
    """
    found: list[np.ndarray] = []
    for step, table in zip(plan.program.steps, plan.tables):
        read = [found[r] for r in step.reads]
        if step.op == "start":
            found.append(_start(plan))
        elif table.links is not None:
            links = table.links
            own, ptr, row, kind = (t.numpy() for t in (links.self_row, links.in_ptr, links.in_row, links.in_edge))
            found.append(KeyTable().add(read[0][own], ptr, packed(read[0][row], kind)))
        elif table.sums is not None:
            sums = written_out(table, len(read[0]))
            found.append(_listed(read[0], *(t.numpy() for t in (sums.ptr, sums.row, sums.count))))
        else:
            parents = [of[index.numpy()] for of, index in zip(read, table.parents)]
            items = packed(parents[-1], np.zeros_like(parents[-1]))
            found.append(KeyTable().add(parents[0], np.arange(len(items) + 1), items))
    return found
