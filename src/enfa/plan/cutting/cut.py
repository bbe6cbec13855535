"""Batches of a dataset, put together from runs instead of sliced row by row.

The plan that comes out is that of ``Slicer.plan``, with rows in another order. What differs is that its maps are never
written out as they stand in a plan: they are joined where they are wanted, in a block that a GPU will read, in both orders.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from enfa.plan.cutting._join import join_map
from enfa.plan.cutting._runs import enter_graphs, total_length
from enfa.plan.cutting.by_graph import by_graph
from enfa.plan.cutting.find import runs_of
from enfa.plan.cutting.known import Known, known_map
from enfa.plan.derived._order import merge_own
from enfa.plan.derived.order import CHUNK
from enfa.plan.keys.intern import KeyTable
from enfa.plan.links import Links, Sums
from enfa.plan.slicing.alone import rows_by_graph
from enfa.plan.slicing.making import Making
from enfa.plan.slicing.slice import Slicer
from enfa.plan.slicing.sources import Bags
from enfa.plan.slicing.wanted import Wanted
from enfa.plan.table import Plan, Table

__all__ = ["MOST", "Cut", "Cutter", "Join"]

MOST = 2**25  # entries of lists: about 400 MB. Of larger datasets, slicing is as fast, and making a cutter takes long
Need = tuple[int, str]  # as in Program.needs


@dataclass
class Join:
    """A map of a batch, not written so far."""

    known: Known
    alone: np.ndarray  # int64: the graphs whose runs hold
    lists: Wanted
    others: np.ndarray  # int32: those outside of runs
    rows: Wanted  # of the table that the lists read
    entries: int

    def write(self, of: np.ndarray, into: Sequence[Any]) -> bool:
        """Into the arrays of a block's lists, padded. False where there is no room for the pieces of long lists.

        ``of`` and ``into``: as ``fill_map`` takes them.
        """
        rows = self.rows
        fits = join_map(
            self.known, self.alone, self.others, self.lists.count, rows.count, rows.numbers.number, rows.base, CHUNK, of, *into
        )
        if fits < 0:
            raise LookupError("Expected every row that is read to be some row's own row, got one that is not")
        return fits > 0


@dataclass
class Cut:
    """A batch: a plan whose maps have shapes and no values, and the maps, by step and name of what is derived."""

    plan: Plan
    joins: dict[Need, Join]


def _shape(*lengths: int, counts: torch.dtype = torch.int32) -> list[torch.Tensor]:
    """Arrays without values, the last of counts."""
    types = [torch.int32] * (len(lengths) - 1) + [counts]
    return [torch.empty(length, dtype=dtype, device="meta") for length, dtype in zip(lengths, types)]


def _merged(table: KeyTable) -> tuple[np.ndarray, np.ndarray]:
    """The own row of each key in front of its items."""
    ptr, index = np.empty(len(table) + 1, np.int32), np.empty(len(table) + int(table.size[1]), np.int32)
    merge_own(table.own, table.item_ptr, table.a, None, ptr, index, None)
    return ptr, index


class Cutter:
    """Cuts batches out of a dataset. Not thread-safe. It keeps every list of every run, several times the dataset's own size.

    ``needs``: those of the model. It is for chains of convs that read merged maps of edges of one kind.
    """

    def __init__(self, slicer: Slicer, needs: Iterable[Need]) -> None:
        self.slicer, rows, self.needs = slicer, slicer.rows, frozenset(needs)
        self.pool, self.runs = len(rows) - 2, runs_of(rows)
        runs = self.runs.tables
        s = slicer.sources
        every = rows_by_graph(rows, s.program, s.node_ptr, s.sub_ptr, s.pair_ptr)
        if any(copies.min(initial=1) < 1 for _, _, copies in every):  # of a file that was written so, as slices find it
            raise ValueError("Expected copies of all rows that graphs have, got some without: compile again")
        self.rows = [by_graph(lists, run, slicer.copies_type) for lists, run in zip(every, runs)]
        lists = rows[self.pool].lists
        assert lists is not None
        pooled = {"sum": (self.pool - 1, lists)}
        pooled |= {f"lowered {table}": (table, keys) for table, keys in slicer.lowered(self.pool).items()}
        # by map: the table that it reads, and what is known of it
        self.maps: dict[Need, tuple[int, Known]] = {}
        for i in range(1, len(runs)):
            self.maps[i, "merged"] = i - 1, known_map(*_merged(rows[i].keys), None, runs[i], runs[i - 1])
        for name, (table, keys) in pooled.items():
            weight = keys.b.astype(slicer.held(keys).counts)
            known = known_map(keys.item_ptr.astype(np.int32), keys.a, weight, self.runs.lists, runs[table])
            self.maps[self.pool, name] = table, known
        # by map, how many entries each graph's run has; by table, how many rows each graph has
        self._entries = np.stack([known.graphs["end"] - known.graphs["begin"] for _, known in self.maps.values()])
        self._rows = np.stack([found.lengths for found in self.rows])

    @staticmethod
    def takes(slicer: Slicer, needs: Iterable[Need]) -> bool:
        """Whether a model is a chain whose convs read nothing but merged maps, and its dataset is not too large."""
        program, rows = slicer.sources.program, slicer.rows
        if not program.layers or len(slicer.sources.edge_mark) > 1:
            return False
        pool, needs = len(rows) - 2, set(needs)
        taken = {(i, "merged") for i in range(1, pool)}
        others = {(n, name) for n, name in needs - taken if 0 <= n <= pool}
        pools = {(pool, "sum"), (pool, "sizes"), *((pool, f"lowered {i}") for i in slicer.lowered(pool))}
        lists = rows[pool].lists
        assert lists is not None
        size = sum(int(found.keys.size.sum()) for found in rows[1:pool]) + int(lists.size[1])
        return taken <= needs and others <= pools and size <= MOST

    def cut(self, graphs: np.ndarray) -> Cut:
        slicer, pool, graphs = self.slicer, self.pool, np.asarray(graphs, np.int64)
        bags, flags = Bags(slicer.sources, graphs), self.runs.mates.alone(graphs)
        making, alone = Making(slicer, bags), graphs[flags]
        lists, run = making.listing(pool), self.runs.lists
        lists.enter(run.begin[alone], run.end[alone])
        in_runs = {pool: lists.count}
        room, entries = (of.sum(axis=1).tolist() for of in (self._rows[:, graphs], self._entries[:, alone]))
        tables = [self._pairs(i, making, flags, room[i], in_runs) for i in range(pool)]
        tables.append(Table(None, bags.count["subgraphs"]))
        tables.append(making.table(pool + 1))
        self._pool(tables[pool], making)
        joins = {}
        for of_runs, ((n, name), (table, known)) in zip(entries, self.maps.items()):
            wanted = lists if n == pool else making.wanted[n]
            others = wanted.rows[in_runs[n] :]
            total = of_runs + total_length(others, known.ptr)
            joins[n, name] = Join(known, alone, wanted, others, making.wanted[table], total)
        self._shapes(tables, joins)
        return Cut(slicer.assembled(bags, making.wanted[0].rows, tables), joins)

    def _pairs(self, number: int, making: Making, flags: np.ndarray, room: int, in_runs: dict[int, int]) -> Table:
        """Number the rows of a table of pairs, at most ``room``. ``flags``: the graphs whose runs hold."""
        rows, wanted, bags = self.rows[number], making.wanted[number], making.bags
        wanted.reserve(room)
        copies = np.zeros(len(wanted.found), self.slicer.copies_type)
        known = wanted.numbers.number, wanted.base, wanted.found
        in_runs[number], wanted.count = enter_graphs(bags.graphs, flags, rows, *known, copies)
        table = Table(None, bags.count["pairs"])
        if making.program.counted:
            table.copies = torch.from_numpy(copies[: wanted.count])
        return table

    def _pool(self, table: Table, making: Making) -> None:
        """The lists of every subgraph; and how many nodes it has, which is not to be counted in lists that are not there."""
        bags = making.bags
        making.enter(self.pool, table)
        making.parts(self.pool, table)
        copies = making.copies[self.pool]
        table.copies = None if copies is None else torch.from_numpy(copies)
        if (self.pool, "sizes") in self.needs:
            assert table.place is not None
            sizes = torch.ones(table.num_rows, dtype=torch.int64)
            sizes[table.place] = torch.from_numpy(self.slicer.sources.sub_size[bags.sub])
            table.cache["sizes"] = sizes.clamp_(min=1)

    def _shapes(self, tables: list[Table], joins: dict[Need, Join]) -> None:
        """What the plan tells of its maps."""
        for (number, name), join in joins.items():
            lists, table, weight = join.lists.count, tables[number], join.known.weight
            if weight is None:
                table.links = Links(*_shape(lists, lists + 1, join.entries - lists, join.entries - lists))
                continue
            counts = torch.int8 if weight.itemsize == 1 else torch.int32
            sums = Sums(*_shape(lists + 1, join.entries, join.entries, counts=counts))
            if name == "sum":
                table.sums = sums
            else:
                table.cache[name] = sums
