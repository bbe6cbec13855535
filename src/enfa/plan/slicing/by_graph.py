"""The rows of every graph in every table of a chain, and how many pairs of the graph each stands for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from enfa.plan.slicing.runs import Run, lists_by_graph
from enfa.plan.steps._pairs import count_by_graph
from enfa.plan.steps.distinct import StepRows
from enfa.plan.wanted import items_of

__all__ = ["ByGraph", "rows_by_graph"]


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


_Lists = tuple[np.ndarray, np.ndarray, np.ndarray]  # ptr [G+1], rows, counts


def _each_once(ptr: np.ndarray, row: np.ndarray, count: np.ndarray, rows: int) -> _Lists:
    """The rows of every graph, each once, with its counts added up."""
    new_ptr, new, total = np.zeros_like(ptr), np.empty(len(row), np.int32), np.empty(len(row), np.int64)
    none = np.zeros_like(ptr), np.empty(0, np.int32)
    count_by_graph(ptr, row, count, *none, np.full(rows, -1, np.int64), new_ptr, new, total)
    return new_ptr, new[: new_ptr[-1]], total[: new_ptr[-1]]


def _of_last(rows: list[StepRows]) -> _Lists:
    """Of the last table of pairs. Where they are not counted, what the lists of the pool name."""
    found, keys = rows[-3], rows[-2].lists
    if found.count_ptr is not None and found.count_row is not None and found.count is not None:
        return found.count_ptr, found.count_row, found.count
    assert keys is not None
    ptr, lists = lists_by_graph(rows)
    ptr, lists, _ = _each_once(ptr, lists, np.ones(len(lists), np.int64), len(keys))
    of_list, row, _ = items_of(keys, lists)
    return _each_once(of_list[ptr].astype(np.int64), row, np.ones(len(row), np.int64), len(found.keys))


def _apart(lists: _Lists, run: Run, dtype: Any) -> ByGraph:
    """Rows of runs, all of which their graphs have, and others."""
    ptr, row, count = lists
    graph = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    inside = (row >= run.begin[graph]) & (row < run.end[graph])
    length = run.end - run.begin
    first, of_run = np.cumsum(length) - length, np.zeros(int(length.sum()), dtype)
    of_run[(first - run.begin)[graph[inside]] + row[inside]] = count[inside]
    outside = np.concatenate([[0], np.cumsum(~inside)])[ptr]
    return ByGraph(run.begin, run.end, first, of_run, outside, row[~inside], count[~inside].astype(dtype))


def rows_by_graph(rows: list[StepRows], runs: list[Run], dtype: Any) -> list[ByGraph]:
    """By table; ``dtype``: of counts. Cost: a pass over the rows that each graph has."""
    found: list[ByGraph] = []
    lists = _of_last(rows)
    for number in reversed(range(len(runs))):
        found.insert(0, _apart(lists, runs[number], dtype))
        if number:  # what stands for a pair has the row that stands for it one step before as its own
            ptr, row, count = lists
            lists = _each_once(ptr, rows[number].keys.own_of(row), count, len(rows[number - 1].keys))
    return found
