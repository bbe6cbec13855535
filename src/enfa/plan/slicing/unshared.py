"""The tables of steps that share no rows: those of a full plan, whose first ones read rows that are shared."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from enfa.edits import Edits
from enfa.graphs import GraphSet
from enfa.plan.links import Links, Sums
from enfa.plan.reference.full import Written, full_table
from enfa.plan.step import Program, Step
from enfa.plan.table import Table

__all__ = ["unshared_tables"]


def unshared_tables(program: Program, graphs: GraphSet, edits: Edits, shared: list[Table], copies: Any) -> list[Table]:
    """``graphs`` and ``edits``: of the batch. ``shared``: its tables with shared rows.

    Those of pairs that are read here say which row each pair has, and forget it.
    """
    kind = torch.int32 if copies is np.int32 else torch.int64
    written, found = Written(graphs, edits, any(step.edges for step in program.steps), kind), []
    place: dict[int, Tensor] = {}
    for number in program.handed_on:
        there = shared[number].place
        assert there is not None
        place[number] = there
        if program.steps[number].kind == "pairs":
            shared[number].place = None
    for step in program.steps[len(shared) :]:
        table = full_table(written, step, [program.steps[r] for r in step.reads])
        found.append(_reading(table, step, place))
    return found


def _reading(table: Table, step: Step, place: Mapping[int, Tensor]) -> Table:
    """The same, where steps that it reads are among these: numbers of pairs, nodes or subgraphs become those of rows."""
    first, last = (place.get(step.reads[k]) for k in (0, -1))
    if first is None and last is None:
        return table

    def at(index: Tensor, there: Tensor | None) -> Tensor:
        return index if there is None else there.index_select(0, index)

    new = table.changed()
    new.cache = {}
    if table.links is not None:
        links = table.links
        new.links = Links(at(links.self_row, first), links.in_ptr, at(links.in_row, first), links.in_edge)
    elif table.sums is not None:
        # copies: batches are written list by list, so that none may be part of two
        new.sums = Sums(table.sums.ptr.clone(), at(table.sums.row, first), table.sums.count.clone())
    else:
        assert table.own is not None
        new.own = at(table.own, first)
        new.other = None if table.other is None else at(table.other, last)
    return new
