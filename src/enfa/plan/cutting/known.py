"""What is known of a batch's maps before the batch is: for the whole dataset, and by graph where rows lie in runs."""

from typing import NamedTuple

import numpy as np

from enfa.plan.cutting.find import Run
from enfa.plan.derived._order import transpose

__all__ = ["Known", "known_map"]

# for each graph where its parts begin and end: the lists of its run, the rows of its run, the entries of these lists, where the
# readers of these rows are pointed to, these readers, and the entries that name rows outside
BY_GRAPH = np.dtype(
    [(f"{part}{side}", np.int64) for part in ("list_", "row_", "", "read_", "back_", "out_") for side in ("begin", "end")]
)


class Known(NamedTuple):
    """The lists of a map over all rows of a dataset, and for the rows of runs their readers.

    Readers are listed for first graphs of pairs, then for second ones: those which belong to the graph or to both. Memory: 4
    bytes for each entry, each reader and each list, 8 for each row, and for each entry by which a list in a run names a row
    outside. Pools have weights, 1 or 4 bytes for each entry and reader (``Held.counts``).
    """

    graphs: np.ndarray  # BY_GRAPH [G]
    ptr: np.ndarray  # int32 [lists+1]
    row: np.ndarray  # int32 [entries]
    weight: np.ndarray | None  # int8 or int32 [entries]
    back_ptr: np.ndarray  # int32 [2 * (rows+1)], for rows in runs
    back_index: np.ndarray  # int32: lists
    back_weight: np.ndarray | None
    out_at: np.ndarray  # int32: entries of lists in runs that name rows outside
    out_of: np.ndarray  # int32: and their lists


def known_map(ptr: np.ndarray, index: np.ndarray, weight: np.ndarray | None, lists: Run, rows: Run) -> Known:
    """Lists over the rows of a table."""
    graphs, count = np.zeros(len(lists.begin), BY_GRAPH), rows.owner.shape[1]
    for side in ("begin", "end"):
        graphs[f"list_{side}"], graphs[f"row_{side}"] = getattr(lists, side), getattr(rows, side)
        graphs[side] = ptr[getattr(lists, side)]
    of = np.repeat(np.arange(len(ptr) - 1, dtype=np.int32), np.diff(ptr))
    parts = []
    readers_so_far = outs_so_far = 0
    for second, (of_list, of_row) in enumerate(zip(lists.owner, rows.owner)):
        mine = of_list[of] >= 0
        near = mine & (of_row[index] >= 0)
        out = np.flatnonzero(mine & ~near).astype(np.int32)
        part = _readers(of[near], index[near], None if weight is None else weight[near], count)
        own = np.unique(of_list[of_list >= 0]), np.unique(of_row[of_row >= 0])
        for side in ("begin", "end"):
            graphs[f"out_{side}"][own[0]] = outs_so_far + np.searchsorted(out, graphs[side][own[0]])
            at = graphs[f"row_{side}"][own[1]]
            graphs[f"read_{side}"][own[1]] = at + second * (count + 1)
            graphs[f"back_{side}"][own[1]] = part[0][at] + readers_so_far
        part[0][:] += readers_so_far
        readers_so_far, outs_so_far = readers_so_far + len(part[1]), outs_so_far + len(out)
        parts.append((*part, out, of[out]))
    back_ptr, back_index, back_weight, out, out_of = (np.concatenate(p) for p in zip(*parts))
    return Known(graphs, ptr, index, weight, back_ptr, back_index, None if weight is None else back_weight, out, out_of)


def _readers(
    of: np.ndarray, index: np.ndarray, weight: np.ndarray | None, rows: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``(ptr, index, weight)`` of the readers of rows."""
    ptr, readers = np.zeros(rows + 1, np.int32), np.empty(len(index), np.int32)
    weights = np.empty(0 if weight is None else len(index), np.int8 if weight is None else weight.dtype)
    transpose(of, index, weight, None, ptr, readers, None if weight is None else weights, None)
    return ptr, readers, weights
