"""The rows of every graph in a table, and how many pairs of the graph each stands for: those of its run, and others."""

from typing import Any, NamedTuple

import numpy as np

from enfa.plan.cutting.find import Run
from enfa.plan.slicing.alone import Lists

__all__ = ["ByGraph", "by_graph"]


class ByGraph(NamedTuple):
    """Rows of one table. Those of a graph's run are ``begin[g]`` to ``end[g]``; the others are listed."""

    begin: np.ndarray  # int64 [G]
    end: np.ndarray  # int64 [G]
    first: np.ndarray  # int64 [G]: where the counts of its run begin in ``of_run``
    of_run: np.ndarray  # counts
    ptr: np.ndarray  # int64 [G+1]
    row: np.ndarray  # int32
    times: np.ndarray  # counts

    @property
    def lengths(self) -> np.ndarray:
        """int64 [G]: how many rows each graph has."""
        return self.end - self.begin + np.diff(self.ptr)


def by_graph(lists: Lists, run: Run, dtype: Any) -> ByGraph:
    """From the rows of each graph, which has all of its run. ``dtype``: of counts."""
    ptr, row, count = lists
    graph = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    inside = (row >= run.begin[graph]) & (row < run.end[graph])
    length = run.end - run.begin
    first, of_run = np.cumsum(length) - length, np.zeros(int(length.sum()), dtype)
    of_run[(first - run.begin)[graph[inside]] + row[inside]] = count[inside]
    outside = np.concatenate([[0], np.cumsum(~inside)])[ptr]
    return ByGraph(run.begin, run.end, first, of_run, outside, row[~inside], count[~inside].astype(dtype))
