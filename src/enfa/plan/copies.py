"""How many (subgraph, node) pairs rows stand for, as far as it is known before the batch is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from enfa.plan.kernels.slice import add_sums, add_up
from enfa.plan.known import Known
from enfa.plan.slice import Slicer

__all__ = ["Copies", "Outside"]


class Outside:
    """Rows outside of runs by graph, each once, as its run names them first; and the copies that they get from it."""

    def __init__(self, graphs: int, graph: np.ndarray, row: np.ndarray, copies: np.ndarray) -> None:
        code, first, which = np.unique(graph.astype(np.int64) << 32 | row, return_index=True, return_inverse=True)
        total = np.zeros(len(code), np.int64)
        np.add.at(total, which, copies)
        order = np.lexsort((first, code >> 32))
        self.row, self.copies = code[order].astype(np.int32), total[order]
        self.ptr = np.searchsorted(code >> 32, np.arange(graphs + 1))

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What the kernels take, in their order."""
        return self.ptr, self.row, self.copies


class Copies:
    """Copies of rows in runs, tables 0…L, and what runs add to the copies of rows outside.

    A row that a graph shares with its mate has other copies in each: ``of_runs[i]`` has all rows of table i twice, first as
    the first graphs of pairs count them, then as the second ones do; ``begin[i]`` and ``end[i]`` bound the runs there.
    """

    def __init__(self, slicer: Slicer, layers: Sequence[Known], top: Known) -> None:
        runs, graphs = slicer.runs, len(slicer.sources.node_ptr) - 1
        second = np.arange(graphs) > runs.mates.mate
        counts = [run.owner.shape[1] for run in runs.tables]
        self.begin, self.end = (
            [getattr(run, side) + second * count for run, count in zip(runs.tables, counts)] for side in ("begin", "end")
        )
        self.of_runs = [np.empty(2 * count, np.int64) for count in counts]
        outside: list[list[tuple[np.ndarray, ...]]] = [[] for _ in counts]
        for turn in (0, 1):
            copies, found = self._top(slicer, top, turn)
            outside[-1].append(found)
            for i in reversed(range(len(counts))):
                self.of_runs[i].reshape(2, -1)[turn] = copies
                if i:
                    of_list, of_row = runs.tables[i].owner[turn], runs.tables[i - 1].owner[turn]
                    own = layers[i - 1].row[layers[i - 1].ptr[:-1]]
                    out = np.flatnonzero((of_list >= 0) & (of_row[own] < 0))
                    outside[i - 1].append((of_list[out], own[out], copies[out]))
                    above, copies = copies, np.zeros(counts[i - 1], np.int64)
                    add_up(own, above, copies)
        self.outside = [Outside(graphs, *(np.concatenate(part) for part in zip(*parts))) for parts in outside]
        """By table: rows of 0…L-1 that are own rows in runs, rows of L that deltas in runs name."""

    @staticmethod
    def _top(slicer: Slicer, top: Known, turn: int) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """The copies in table L, by graphs of one kind; graphs, rows and copies of what their runs name outside."""
        rows, runs, graphs = slicer.rows, slicer.runs, np.arange(len(slicer.sources.node_ptr) - 1)
        bags, here = slicer.bags(graphs), (graphs > runs.mates.mate) == turn
        of_delta = np.bincount(rows.sub_delta[bags.sub[here[bags.sub_graph]]], minlength=len(rows.deltas))
        assert top.weight is not None
        copies = np.zeros(runs.tables[-1].owner.shape[1], np.int64)
        add_sums(top.ptr, top.row, top.weight, of_delta, copies)
        add_up(bags.base, (bags.using * here)[bags.base_graph], copies)
        of = np.repeat(np.arange(len(top.ptr) - 1, dtype=np.int32), np.diff(top.ptr))
        owner = runs.deltas.owner[turn]
        out = np.flatnonzero((owner[of] >= 0) & (runs.tables[-1].owner[turn, top.row] < 0))
        of = of[out]
        return copies, (owner[of], top.row[out], top.weight[out] * of_delta[of])
