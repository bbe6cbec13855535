"""Batches of a dataset, put together from runs instead of sliced row by row.

The plan that comes out is ``Slicer.plan(graphs, runs=True)``. What differs is that its maps are never written out as they stand
in a plan: they are joined where they are wanted, in a block that a GPU will read, in both orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from enfa.plan.copies import Copies
from enfa.plan.intern import KeyTable
from enfa.plan.kernels.join import join_map
from enfa.plan.kernels.order import merge_own
from enfa.plan.kernels.runs import copy_runs, descend_runs, enter_outside
from enfa.plan.kernels.slice import add_sums, add_up
from enfa.plan.known import Known, known_map
from enfa.plan.order import CHUNK
from enfa.plan.slice import Bags, Slicer
from enfa.plan.table import Layer, Links, Plan, Sums
from enfa.plan.wanted import Wanted, items_of

__all__ = ["MOST", "Cut", "Cutter", "Join"]

_NONE = torch.empty(0, dtype=torch.int32)
MOST = 2**25  # entries of lists: about 400 MB. Of larger datasets, slicing is as fast, and making a cutter takes long


@dataclass
class Join:
    """A map of a batch, not written so far."""

    known: Known
    graphs: np.ndarray
    alone: np.ndarray  # places of the graphs whose runs hold
    others: np.ndarray  # int32: lists outside of runs
    rows: Wanted  # of the table that the lists read
    entries: int

    def write(self, of: np.ndarray, into: Sequence[Any]) -> bool:
        """Into the arrays of a block's lists, padded. False where there is no room for the pieces of long lists.

        ``of`` and ``into``: as ``fill_map`` takes them.
        """
        rows = self.rows
        fits = join_map(
            self.known, self.graphs, self.alone, self.others, rows.count, rows.numbers.number, rows.base, CHUNK, of, *into,
        )
        if fits < 0:
            raise LookupError("Expected every row that is read to be some row's own row, got one that is not")
        return fits > 0


@dataclass
class Cut:
    """A batch: a plan without its maps, and the maps."""

    plan: Plan
    layers: list[Join]
    pools: list[Join]  # of the last table, or of all


def _merged(table: KeyTable) -> tuple[np.ndarray, np.ndarray]:
    """The own row of each key in front of its items."""
    ptr, index = np.empty(len(table) + 1, np.int32), np.empty(len(table) + int(table.size[1]), np.int32)
    merge_own(table.own, table.item_ptr, table.a, None, ptr, index, None)
    return ptr, index


class Cutter:
    """Cuts batches out of a dataset whose edges are of one kind. Not thread-safe.

    ``tables``: for models that pool every table. It keeps every list of every run, several times the dataset's own size.
    """

    def __init__(self, slicer: Slicer, tables: bool) -> None:
        self.slicer, rows, runs = slicer, slicer.rows, slicer.runs
        of_layers = zip(rows.layers, runs.tables[1:], runs.tables)
        self.layers = [known_map(*_merged(layer.rows), None, lists, before) for layer, lists, before in of_layers]
        base, ends = rows.base_row, (rows.base_ptr[:-1], rows.base_ptr[1:])
        self.pools: list[Known] = []
        for i in range(len(rows.layers), 0 if tables else len(rows.layers) - 1, -1):
            table = slicer.deltas(i) if i < len(rows.layers) else rows.deltas
            deltas = table.item_ptr.astype(np.int32), table.a, table.b.astype(slicer.counts(table))
            self.pools.insert(0, known_map(*deltas, runs.deltas, runs.tables[i], (base, *ends)))
            base = rows.layers[i - 1].rows.own[base]
        self.copies = Copies(slicer, self.layers, self.pools[-1])
        # by map, how many entries each graph's run has, or each delta of a pool; by table, how many rows its run has and names
        self._entries = np.stack([k.graphs["end"] - k.graphs["begin"] for k in self.layers + self.pools])
        self._lengths = np.stack([np.diff(k.ptr) for k in self.pools])
        self._rows = np.stack([r.end - r.begin + np.diff(o.ptr) for r, o in zip(runs.tables, self.copies.outside)])

    @staticmethod
    def takes(slicer: Slicer) -> bool:
        """Whether batches are whole bags without contexts, of edges of one kind, from a dataset that is not too large."""
        spec, rows = slicer.sources.spec, slicer.rows
        maps = [int(layer.rows.size.sum()) for layer in rows.layers]
        maps.append(int(rows.deltas.size[1]) + len(rows.base_row))
        return (
            spec.context is None and spec.output == "graph" and not spec.pruned and not spec.degrees
            and len(slicer.edge_mark) == 1 and sum(maps) <= MOST
        )  # fmt: skip

    def cut(self, graphs: np.ndarray) -> Cut:
        slicer, rows, bags = self.slicer, self.slicer.rows, self.slicer.bags(graphs)
        places = slicer.runs.mates.alone(graphs)
        alone = graphs[places]
        entries, room = (by[:, alone].sum(axis=1).tolist() for by in (self._entries, self._rows))
        deltas = slicer.wanted(rows.deltas)
        deltas.enter(slicer.runs.deltas.begin[alone], slicer.runs.deltas.end[alone])
        in_runs = deltas.count
        sub_delta = deltas.add(rows.sub_delta[bags.sub])
        others = deltas.rows[in_runs:]
        of_others = np.bincount(sub_delta, minlength=deltas.count)[in_runs:]
        table, copies, in_runs = self._top_table(alone, bags, room[-1], others, of_others)
        joins: list[Join] = []
        layers: list[Layer] = []
        tables = [table]
        for i in reversed(range(len(rows.layers))):
            rest, run = table.rows[in_runs:], slicer.runs.tables[i]
            before = slicer.wanted(rows.layers[i - 1].table if i else rows.start)
            before.reserve(room[i] + len(rest))
            below = np.zeros(len(before.found), copies.dtype)
            in_below, before.count, items = descend_runs(
                alone, run.begin, run.end, self.copies.begin[i], self.copies.end[i], self.copies.of_runs[i],
                *self.copies.outside[i].arrays, rest, rows.layers[i].rows.heads, copies[in_runs:],
                before.numbers.number, before.base, before.found, below,
            )  # fmt: skip
            layers.insert(0, Layer(Links(_NONE, _NONE, _NONE, _NONE), torch.from_numpy(copies)))
            joins.insert(0, Join(self.layers[i], graphs, places, rest, before, entries[i] + items + len(rest)))
            tables.insert(0, before)
            table, copies, in_runs = before, below[: before.count], in_below
        pools = []
        more = self._lengths[:, others].sum(axis=1).tolist()
        for k, (known, table) in enumerate(zip(self.pools, tables[-len(self.pools) :])):
            pooled = entries[len(rows.layers) + k] + more[k] + len(bags.base)
            pools.append(Join(known, graphs, places, others, table, pooled))
        delta = Sums(torch.empty(deltas.count + 1, dtype=torch.int32), _NONE, _NONE)
        pool = {"base_row": _NONE, "base_graph": torch.from_numpy(bags.base_graph), "delta": delta}
        plan = slicer.assembled(graphs, bags, tables[0].rows, layers, pool, sub_delta, {})
        return Cut(plan, joins, pools)

    def _top_table(
        self, alone: np.ndarray, bags: Bags, room: int, others: np.ndarray, of_others: np.ndarray
    ) -> tuple[Wanted, np.ndarray, int]:
        """Rows of table L, their copies, and how many of them lie in runs. ``others``: deltas outside of runs."""
        rows, run = self.slicer.rows, self.slicer.runs.tables[-1]
        table = self.slicer.wanted(rows.layers[-1].table)
        table.enter(run.begin[alone], run.end[alone])
        in_runs = table.count
        base_row = table.add(bags.base)
        ptr, row, count = items_of(rows.deltas, others)
        table.reserve(room + len(row))
        copies = np.zeros(len(table.found), bags.copies_type)
        copy_runs(alone, self.copies.begin[-1], self.copies.end[-1], self.copies.of_runs[-1], copies)
        numbers = table.numbers.number, table.base, table.found
        table.count = enter_outside(alone, *self.copies.outside[-1].arrays, *numbers, table.count, copies)
        add_sums(ptr, table.replace(row), count, of_others, copies)
        shared = base_row >= in_runs
        add_up(base_row[shared], bags.using[bags.base_graph[shared]], copies)
        return table, copies[: table.count], in_runs
