"""Rows that only one graph of a dataset uses, or only two.

In a large dataset of varied graphs these are most of the later tables. What reads such a row is used by no other graph, too. So
what a batch holds of them, links and readers alike, is known before the batch is, but for an offset, provided that they lie
side by side: the *run* of a graph in a table. ``enfa.plan.rows.arrange`` sees to that.

Datasets come with pairs of graphs that have much in common. A graph's *mate* is the one with which it shares most rows that
no other uses. They belong to the runs of both, and the runs hold where the mate is not in the batch.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from enfa.plan.cutting._runs import UNUSED, claim_keys, claim_rows, keep_runs, match, two_users
from enfa.plan.rows.distinct import StepRows
from enfa.plan.slicing.wanted import items_of

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
        """bool: of the graphs of a batch those whose mates are not among them."""
        there = np.zeros(len(self.mate), bool)
        there[graphs] = True
        mate = self.mate[graphs]
        return ~there[mate] | (mate == graphs)


@dataclass
class Run:
    """The rows ``begin[g]`` to ``end[g]`` of a table are used by graph g and at most by its mate."""

    begin: np.ndarray  # int64 [G]
    end: np.ndarray  # int64 [G]
    owner: np.ndarray  # int32 [2, rows]: the first, and the second, of a pair in whose run a row lies, or a number below 0


@dataclass
class Runs:
    """Runs in every table of a chain. What reads a row of a graph's run lies in a run of that graph or of its mate."""

    mates: Mates
    lists: Run  # of the pool of pairs
    tables: list[Run]  # 0…L


def lists_by_graph(rows: list[StepRows]) -> tuple[np.ndarray, np.ndarray]:
    """``(ptr [G+1], lists)`` of the pool of a chain's pairs; a list may come several times."""
    pools, graphs = rows[-2:]
    assert graphs.place is not None
    ptr, sub, _ = items_of(graphs.keys, graphs.place)
    of_sub, lists, _ = items_of(pools.keys, sub)
    return of_sub[ptr].astype(np.int64), lists


def mates_of(rows: list[StepRows]) -> Mates:
    """By the rows of the last table of pairs that exactly two graphs use."""
    (ptr, lists), keys, table = lists_by_graph(rows), rows[-2].lists, rows[-3].keys
    graphs = len(ptr) - 1
    users, own = np.full((2, len(table)), UNUSED, np.int32), np.zeros(graphs, np.int64)
    assert keys is not None
    two_users(ptr, lists, keys.heads, keys.items, np.full(len(table), UNUSED, np.int32), users, own)
    both = users[:, users[1] >= 0].astype(np.int64)
    pair, count = np.unique(both.min(axis=0) * graphs + both.max(axis=0), return_counts=True)
    one, other = pair // max(graphs, 1), pair % max(graphs, 1)
    enough = count >= ENOUGH * np.minimum(own[one], own[other])
    best = np.argsort(-count[enough], kind="stable")
    mate = np.arange(graphs)
    match(one[enough][best], other[enough][best], mate)
    return Mates(mate)


def owners_of(
    rows: list[StepRows], mates: Mates, settle: Callable[[np.ndarray], object] = len
) -> tuple[np.ndarray, list[np.ndarray]]:
    """int32, for the lists of a chain's pool and for tables 0…L: the pair of graphs that alone uses a row, times 4, and 1 where
    its first one does, 2 where its second one does, 3 where both do; or a number below 0.

    ``settle`` may change the owners of a table before it is asked what uses the one below. Cost: a pass over the tables.
    """
    keys = rows[-2].lists
    assert keys is not None
    lists = np.full(len(keys), UNUSED, np.int32)
    claim_rows(*lists_by_graph(rows), mates.claim, lists)
    settle(lists)
    tables: list[np.ndarray] = []
    above = lists
    for found in reversed(rows[:-2]):
        owner = np.full(len(found.keys), UNUSED, np.int32)
        claim_keys(above, keys.heads, keys.items, above is not lists, owner)
        settle(owner)
        above, keys = owner, found.keys
        tables.insert(0, owner)
    return lists, tables


def runs_of(rows: list[StepRows]) -> Runs:
    """The runs in every table. Rows of a graph elsewhere count as shared by all."""
    mates, found = mates_of(rows), []
    graphs = np.arange(len(mates.mate))
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

    owners_of(rows, mates, settle)
    return Runs(mates, found[0], found[:0:-1])
