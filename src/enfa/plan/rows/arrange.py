"""Numbering the rows of every step anew, graph by graph, as slices read them; rows that count nothing are left out.

Compiling numbers the rows of a table as it meets them, by chunks of graphs, unedited graphs first. A batch reads rows
graph by graph, from the last table downwards. Numbered in that order, the rows of a graph that no earlier one has lie side by
side in every table: slices find them in fewer places of the memory, and the differences that a file stores are smaller.
Rows that many graphs use come first, so that nothing stands between those of one graph, or of two (``enfa.plan.cutting.find``).
"""

import numpy as np

from enfa.plan.cutting.find import mates_of, owners_of
from enfa.plan.keys._intern import renumber
from enfa.plan.keys.intern import KeyTable, packed
from enfa.plan.rows.distinct import StepRows
from enfa.plan.slicing.wanted import Numbers, Wanted, items_of
from enfa.plan.step import Program

__all__ = ["Arranger", "Order", "arrange_steps"]

_NONE = np.zeros(0, np.int32)


class Order:
    """A new order of a table's rows: those that many graphs use, then the others, as they are met."""

    def __init__(self, table: KeyTable, owner: np.ndarray | None) -> None:
        self.table, self.owner, self.wanted = table, owner, Wanted(Numbers(len(table)))

    def rows(self) -> np.ndarray:
        """int32: the rows in their new order. No more are met, and those that were not are left out: they count nothing."""
        rows = self.wanted.rows
        if self.owner is not None:
            # by pair of graphs: rows of its first one, of both, of its second one
            owner = self.owner[rows]
            key = np.where(owner < 0, -1, owner ^ (owner >> 1 & 1))
            rows[:] = rows[np.argsort(key, kind="stable")]
            self.number[rows] = np.arange(len(rows), dtype=np.int32)
        return rows

    @property
    def number(self) -> np.ndarray:
        """int32: the new number of every row that was met, once all are; of no others."""
        return self.wanted.numbers.number


class Arranger:
    """Takes tables apart, in their new orders, and puts them together once all orders are known."""

    def __init__(self) -> None:
        self.apart: list[tuple[KeyTable, tuple[np.ndarray, ...], Order | None, Order | None]] = []

    def take(self, order: Order, own: Order | None, item: Order | None) -> None:
        """No more rows of a table are met: its keys follow one another in the new order, and meet what they name."""
        table = order.table
        rows = order.rows()
        owns = table.own_of(rows)
        ptr, named, rest = items_of(table, rows)
        items = packed(named, rest)
        table.heads = table.items = np.empty(0, np.int64)  # memory: one table at a time is there twice
        table.hashes, table.slots = np.empty(0, np.uint64), _NONE  # hashed again when keys are added
        self.apart.append((table, (owns, ptr, items), own, item))
        if own is not None:
            own.wanted.add(owns)
        if item is not None:
            item.wanted.replace(named)

    def join(self) -> None:
        for table, (own, ptr, items), own_order, item_order in self.apart:
            numbers = (_NONE if order is None else order.number for order in (own_order, item_order))
            table.heads, table.items = np.empty(len(own) + 1, np.int64), items
            table.size[:] = len(own), len(items)
            renumber(own, ptr, items, *numbers, table.heads)


def arrange_steps(rows: list[StepRows], program: Program, runs: bool = True) -> None:
    """In place. Cost: some passes over the tables; without ``runs``, over the rows that are met."""
    owners: list[np.ndarray | None] = [None] * len(rows)
    of_lists: np.ndarray | None = None
    if runs and program.layers:  # only chains have runs
        of_lists, owners[:-2] = owners_of(rows, mates_of(rows))
    orders, arranger = [Order(found.keys, owner) for found, owner in zip(rows, owners)], Arranger()
    for number in reversed(range(len(rows))):
        step, found, order = program.steps[number], rows[number], orders[number]
        for met in (found.count_row, found.place):
            if met is not None:
                order.wanted.add(met)
        own, item = (None if read is None else orders[read] for read in (step.own, step.item))
        if found.lists is not None:
            lists = Order(found.lists, of_lists)
            arranger.take(order, None, lists)
            arranger.take(lists, None, item)
        else:
            arranger.take(order, own, item)
        for name in ("count_row", "place"):
            if getattr(found, name) is not None:
                setattr(found, name, order.number[getattr(found, name)])
    arranger.join()
