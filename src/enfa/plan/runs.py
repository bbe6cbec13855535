"""Rows that only one graph of a dataset uses, or only two.

In a large dataset of varied graphs these are most of the later tables. Whoever reads such a row is used by no other graph,
too. So what a batch holds of them, links and readers alike, is known before the batch is, but for an offset, provided that
they lie side by side: the *run* of a graph in a table. ``enfa.plan.arrange`` sees to that.

Datasets come with pairs of graphs that have much in common. A graph's *mate* is the one with which it shares most rows that
nobody else uses. They belong to the runs of both, and the runs hold where the mate is not in the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from enfa.plan.distinct import DistinctRows
from enfa.plan.kernels.runs import NOBODY, claim_keys, claim_rows, keep_runs, match, two_users

__all__ = ["Mates", "Run", "Runs", "mates_of", "owners_of", "runs_of"]

ENOUGH = 0.25  # of the rows of a graph must be shared with its mate: where both are in a batch, neither has runs


@dataclass
class Mates:
    """Graphs in pairs; one without a mate is its own."""

    mate: np.ndarray  # int64 [G]

    @property
    def claim(self) -> np.ndarray:
        """int32 [G]: pair * 4 + 1 for its first graph, + 2 for its second one."""
        graph = np.arange(len(self.mate))
        return (4 * np.minimum(graph, self.mate) + np.where(graph <= self.mate, 1, 2)).astype(np.int32)

    def alone(self, graphs: np.ndarray) -> np.ndarray:
        """Places of the graphs whose mates are not among them."""
        there = np.zeros(len(self.mate), bool)
        there[graphs] = True
        mate = self.mate[graphs]
        return np.flatnonzero(~there[mate] | (mate == graphs))


@dataclass
class Run:
    """The rows ``begin[g]`` to ``end[g]`` of a table are used by graph g and at most by its mate."""

    begin: np.ndarray  # int64 [G]
    end: np.ndarray  # int64 [G]
    owner: np.ndarray  # int32 [2, rows]: the first, and the second, of a pair in whose run a row lies, or a number below 0


@dataclass
class Runs:
    """Runs in every table of a dataset. Whoever reads a row of a graph's run lies in a run of that graph or of its mate."""

    mates: Mates
    deltas: Run
    tables: list[Run]  # 0…L


def mates_of(rows: DistinctRows, sub_ptr: np.ndarray) -> Mates:
    """By the rows of table L that exactly two graphs use."""
    graphs, table = len(sub_ptr) - 1, rows.layers[-1].table
    users, seen = np.full((2, len(table)), NOBODY, np.int32), np.full(len(rows.deltas), NOBODY, np.int32)
    deltas = rows.deltas.heads, rows.deltas.items
    two_users(rows.base_ptr, rows.base_row, sub_ptr, rows.sub_delta, *deltas, seen, users)
    both = users[:, users[1] >= 0].astype(np.int64)
    pair, count = np.unique(both.min(axis=0) * graphs + both.max(axis=0), return_counts=True)
    one, other = pair // max(graphs, 1), pair % max(graphs, 1)
    own = rows.graph_rows[-1]
    enough = count >= ENOUGH * np.minimum(own[one], own[other])
    best = np.argsort(-count[enough], kind="stable")
    mate = np.arange(graphs)
    match(one[enough][best], other[enough][best], mate)
    return Mates(mate)


def owners_of(
    rows: DistinctRows,
    sub_ptr: np.ndarray,
    mates: Mates,
    settle: Callable[[np.ndarray], object] = len,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """int32, for deltas, and for tables 0…L without contexts: the pair of graphs that alone uses a row, times 4, and whether
    its first one does (1), its second one (2) or both (3); or a number below 0.

    ``settle`` may change the owners of a table
    before it is asked who uses the one below. Cost: a pass over the tables.
    """
    claim = mates.claim
    deltas = np.full(len(rows.deltas), NOBODY, np.int32)
    claim_rows(sub_ptr, rows.sub_delta, claim, deltas)
    settle(deltas)
    top = np.full(len(rows.layers[-1].table), NOBODY, np.int32)
    claim_rows(rows.base_ptr, rows.base_row, claim, top)
    claim_keys(deltas, rows.deltas.heads, rows.deltas.items, False, top)
    settle(top)
    tables = [top]
    for layer, below in zip(rows.layers[::-1], [*rows.layers[-2::-1], None]):
        owner = np.full(len(rows.start if below is None else below.table), NOBODY, np.int32)
        claim_keys(tables[0], layer.rows.heads, layer.rows.items, True, owner)
        settle(owner)
        tables.insert(0, owner)
    return deltas, tables


def runs_of(rows: DistinctRows, sub_ptr: np.ndarray) -> Runs:
    """The runs in every table. Rows of a graph elsewhere count as shared by all."""
    mates, found = mates_of(rows, sub_ptr), []
    graphs = np.arange(len(sub_ptr) - 1)
    first = graphs <= mates.mate
    # by pair, for first and for second graphs: the graph, times 4, and which of the two it is
    sides = np.full((2, len(graphs)), -1, np.int64)
    sides[0, first] = 4 * graphs[first] + 1  # a pair has the number of its first graph
    sides[1, mates.mate[~first]] = 4 * graphs[~first] + 2

    def settle(owner: np.ndarray) -> None:
        lost = 1
        while lost:  # a row that one of a pair loses may break the run of the other
            begin, end = np.zeros(len(graphs), np.int64), np.zeros(len(graphs), np.int64)
            lost = sum(keep_runs(owner, side, begin, end) for side in sides)
        pair = np.maximum(owner, 0) >> 2
        of_sides = [np.where((owner >= 0) & (owner & bit > 0), side[pair] >> 2, -1) for bit, side in zip((1, 2), sides)]
        found.append(Run(begin, end, np.stack(of_sides).astype(np.int32)))

    owners_of(rows, sub_ptr, mates, settle)
    return Runs(mates, found[0], found[:0:-1])
