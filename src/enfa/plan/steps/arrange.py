"""Numbering the rows of every step anew, graph by graph, as slices read them; rows that count nothing are left out."""

from __future__ import annotations

from enfa.plan.arrange import Arranger, Order
from enfa.plan.steps.distinct import StepRows
from enfa.plan.steps.step import Program

__all__ = ["arrange_steps"]


def arrange_steps(rows: list[StepRows], program: Program) -> None:
    """In place. Cost: some passes over the tables."""
    orders, arranger = [Order(found.keys) for found in rows], Arranger()
    for number in reversed(range(len(rows))):
        step, found, order = program.steps[number], rows[number], orders[number]
        if found.count_row is not None:
            found.count_row = order.wanted.add(found.count_row)
        if found.place is not None:
            found.place = order.wanted.add(found.place)
        read = [orders[r] for r in step.reads]
        own = read[0] if step.op in ("propagate", "spread", "diagonal", "join") else None
        item = read[-1] if read else None  # of a join the second, otherwise the only one
        if found.lists is not None:
            lists = Order(found.lists)
            arranger.take(order, None, lists)
            arranger.take(lists, None, item)
        else:
            arranger.take(order, own, item)
    arranger.join()
