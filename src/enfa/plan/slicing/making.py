"""The tables of one plan, from the last down: what is read of the ones before is numbered anew."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import torch

from enfa.plan.arrays import tensor
from enfa.plan.keys.intern import KeyTable
from enfa.plan.links import Links, Sums
from enfa.plan.rows.distinct import StepRows
from enfa.plan.slicing._slice import add_sums, add_up, enter_counts, enter_lists
from enfa.plan.slicing.held import Held
from enfa.plan.slicing.sources import Bags
from enfa.plan.slicing.wanted import Wanted
from enfa.plan.step import Step
from enfa.plan.table import Table

if TYPE_CHECKING:
    from enfa.plan.slicing.slice import Slicer

__all__ = ["Making"]


class Making:
    """One plan in the making."""

    def __init__(self, slicer: Slicer, bags: Bags) -> None:
        self.slicer, self.bags, self.program = slicer, bags, slicer.sources.program
        self.wanted = [slicer.held(rows.keys).wanted() for rows in slicer.rows]
        self.copies: list[np.ndarray | None] = [None] * len(slicer.rows)
        self.lists: defaultdict[int, list[np.ndarray]] = defaultdict(list)  # by step, rows not numbered so far
        self.counted: dict[int, tuple[np.ndarray, ...]] = {}  # by step, lists by which its rows are counted
        self.listings: dict[int, Wanted] = {}  # by pool of pairs

    def enter(self, number: int, table: Table) -> None:
        """The rows that the graphs have, where it is not known from later steps; and those of their nodes and subgraphs."""
        step, rows, wanted, bags = self.program.steps[number], self.slicer.rows[number], self.wanted[number], self.bags
        counted, kind = self.program.counted, self.slicer.copies_type
        if rows.place is not None and step.kind != "graphs":
            place = wanted.add(rows.place[bags.placed(step.kind)])
            table.place = tensor(place)
            if counted:
                self.copies[number] = np.bincount(place, minlength=wanted.count).astype(kind)
        elif number in self.program.counted_by:
            self.count(number, kind)
        for listed in self.lists.pop(number, []):  # nearly all are wanted by now
            wanted.replace(listed)
        found = self.copies[number]
        # of a file that was written so: kernels look at no lengths
        if found is not None and (len(found) != wanted.count or found.min(initial=1) < 1):
            raise ValueError(f"Expected copies of all rows that are read of step {number}, got some without: compile again")

    def count(self, number: int, kind: type[np.signedinteger]) -> None:
        """What the rows stand for that all these pairs have."""
        rows, wanted, graphs, lists = self.slicer.rows[number], self.wanted[number], self.bags.graphs, self.counted.get(number)
        ptr = rows.count_ptr if lists is None else lists[0]
        assert ptr is not None
        wanted.reserve(int((ptr[graphs + 1] - ptr[graphs]).sum()) if lists is None else int(ptr[-1]))
        copies = np.zeros(len(wanted.found), kind)
        known = wanted.numbers.number, wanted.base, wanted.found, wanted.count, copies
        if lists is None:
            wanted.count = enter_counts(graphs, ptr, rows.count_row, rows.count, *known)
        else:
            wanted.count = enter_lists(*lists, *known)
        self.copies[number] = copies[: wanted.count]

    def owns(self, number: int, same: bool) -> tuple[np.ndarray, np.ndarray]:
        """New numbers of own rows, and where items begin. ``same``: own rows stand for what the rows stand for."""
        read, keys = self.program.steps[number].reads[0], self.slicer.rows[number].keys
        own, ptr = self.wanted[read].add_owns(keys, self.wanted[number].rows)
        if same:
            self.hand_down(number, read, own)
        return own, ptr

    def hand_down(self, number: int, read: int, index: np.ndarray) -> None:
        """Rows stand for what those that have them as own rows stand for, all together."""
        above = self.copies[number]
        if above is not None and self.copies[read] is None:
            copies = np.zeros(self.wanted[read].count, above.dtype)
            add_up(index, above, copies)
            self.copies[read] = copies

    def table(self, number: int) -> Table:
        step, rows, slicer = self.program.steps[number], self.slicer.rows[number], self.slicer
        table, held, wanted = Table(None, self.bags.count[step.kind]), slicer.held(rows.keys), self.wanted[number]
        self.enter(number, table)
        if step.op == "propagate":
            table.links = self.links(number, step, held)
        elif step.op == "join":
            own, ptr = self.owns(number, True)
            other = self.wanted[step.reads[1]].replace(held.firsts(wanted.rows, ptr))
            self.hand_down(number, step.reads[1], other)
            table.own, table.other = tensor(own), tensor(other)
        elif step.op in ("spread", "diagonal"):
            table.own = tensor(self.owns(number, False)[0])
        elif rows.lists is not None:
            self.parts(number, table)
            self.pool(number, table, rows.lists)
        elif step.kind == "graphs":
            table.sums = self.graphs(step.reads[0], rows, held)
        elif step.op != "start":
            table.sums = self.sums(step.reads[0], *held.items(wanted.rows))
        if step.kind != "graphs" and self.program.counted:
            copies = self.copies[number]
            assert copies is not None and len(copies) == wanted.count
            table.copies = torch.from_numpy(copies)
        return table

    def links(self, number: int, step: Step, held: Held) -> Links:
        own, ptr = self.owns(number, True)
        rows, read = self.wanted[number].rows, self.wanted[step.reads[0]]
        if step.edges and len(self.slicer.sources.edge_mark) > 1:
            row, kind = held.both(rows, ptr)
            of_kind = torch.from_numpy(kind)
        else:  # all of kind 0
            row = held.firsts(rows, ptr)
            of_kind = self.slicer.zeros(len(row))
        # a row sent is that of a node, which has one in the next table too: nearly all are wanted by now
        return Links(torch.from_numpy(own), torch.from_numpy(ptr), torch.from_numpy(read.replace(row)), of_kind)

    def sums(self, read: int, ptr: np.ndarray, row: np.ndarray, count: np.ndarray) -> Sums:
        """``row``: not numbered so far, which is done in place when all that reads the step is known."""
        self.lists[read].append(row)
        return Sums(*map(torch.from_numpy, (ptr, row, count)))

    def graphs(self, read: int, rows: StepRows, held: Held) -> Sums:
        """Every graph is a row, so that what was pooled need not be gathered."""
        if self.bags.whole:
            assert rows.place is not None
            return self.sums(read, *held.items(rows.place[self.bags.graphs]))
        place = self.slicer.rows[read].place
        assert place is not None
        ptr = np.concatenate([[0], np.cumsum(self.bags.subs)]).astype(np.int32)
        return self.sums(read, ptr, place[self.bags.sub], np.ones(len(self.bags.sub), held.counts))

    def listing(self, pool: int) -> Wanted:
        """The lists of a pool of pairs that are wanted."""
        if pool not in self.listings:
            lists = self.slicer.rows[pool].lists
            assert lists is not None
            self.listings[pool] = self.slicer.held(lists).wanted()
        return self.listings[pool]

    def parts(self, number: int, table: Table) -> None:
        """The lists of each subgraph."""
        ptr, part = self.slicer.held(self.slicer.rows[number].keys).listed(self.wanted[number].rows)
        self.listing(number).replace(part)
        table.parts = Sums(torch.from_numpy(ptr), torch.from_numpy(part), self.slicer.ones(len(part)))

    def pool(self, number: int, table: Table, keys: KeyTable) -> None:
        """The rows of each list, of earlier tables too."""
        lists, read, weight = self.listing(number), self.program.steps[number].reads[0], None
        counts = self.program.counted_by.get(read) == number
        if counts or not self.bags.whole:
            assert table.place is not None and table.parts is not None
            times, weight, parts = self.copies[number], np.zeros(lists.count, np.int64), table.parts
            if times is None:
                times = np.bincount(table.place.numpy(), minlength=self.wanted[number].count)
            add_sums(parts.ptr.numpy(), parts.row.numpy(), parts.count.numpy(), times, weight)
        listed = self.listed(self.slicer.held(keys), lists.rows, read, weight)
        if counts:
            assert weight is not None
            self.counted[read] = (*listed, weight)
            table.sums = Sums(*map(torch.from_numpy, listed))
        else:
            table.sums = self.sums(read, *listed)
        for earlier, of_earlier in self.slicer.lowered(number).items():
            listed = self.listed(self.slicer.held(of_earlier), lists.rows, earlier, weight)
            table.cache[f"lowered {earlier}"] = self.sums(earlier, *listed)

    def listed(self, held: Held, lists: np.ndarray, read: int, weight: np.ndarray | None) -> tuple[np.ndarray, ...]:
        """``(ptr, row, count)`` of some lists over the rows of a step.

        ``weight``: how many subgraphs have each. Rows that those of a part of a bag add and take away again are left out.
        """
        ptr, row, count = held.items(lists)
        if weight is not None and not self.bags.whole:
            rows = self.slicer.held(self.slicer.rows[read].keys).scratch()
            new = rows.add(row)
            copies = np.zeros(rows.count, np.int64)
            add_sums(ptr, new, count, weight, copies)
            there = copies[new] > 0
            ptr = np.concatenate([[0], np.cumsum(there)])[ptr].astype(np.int32)
            row, count = row[there], count[there]
        return ptr, row, count
