"""The lists of a pool over earlier tables, for models that pool several of them side by side (jumping knowledge).

Every row is replaced by the row of the same pair in an earlier table. Rows that an edit has not reached there cancel, so the
lists get shorter.
"""

from collections.abc import Iterable

import numpy as np
import torch

from enfa.plan.derived.maps import lowered as lower
from enfa.plan.keys.intern import KeyTable
from enfa.plan.links import Sums
from enfa.plan.rows.distinct import StepRows
from enfa.plan.step import Program
from enfa.plan.table import Plan

__all__ = ["lowered", "lowered_keys"]


def _check(program: Program, pool: int, table: int) -> list[tuple[int, int]]:
    step = program.steps[pool]
    way = program.way(step.reads[0], table) if step.op == "pool" else None
    if way is None:
        raise ValueError(f"Expected a pool, and a table that its own reaches by own rows, got step {pool} ({step}) and {table}")
    return way


def lowered(plan: Plan, pool: int, table: int) -> Sums:
    """The lists of a pool over the rows of an earlier table. Kept with the plan."""
    cache, name = plan.tables[pool].cache, f"lowered {table}"
    if name not in cache:
        way, sums = _check(plan.program, pool, table), plan.tables[pool].sums
        assert sums is not None
        for number, side in way:
            below = plan.num_rows(plan.program.steps[number].reads[side])
            sums = lower(sums, plan.tables[number].parents[side], below)
        cache[name] = sums
    return cache[name]


def lowered_keys(rows: list[StepRows], program: Program, pool: int, tables: Iterable[int]) -> dict[int, KeyTable]:
    """The same of all graphs of a dataset, over several tables."""
    lists, at, found = rows[pool].lists, program.steps[pool].reads[0], {}
    assert lists is not None
    of_pool = sums = Sums(*map(torch.from_numpy, (lists.item_ptr, lists.a, lists.b)))
    for table in sorted(tables, reverse=True):
        way = program.way(at, table)  # from the one before, where it lies on the way
        if way is None:
            way, sums = _check(program, pool, table), of_pool
        for number, side in way:
            keys, below = rows[number].keys, len(rows[program.steps[number].reads[side]].keys)
            # the items of a join are its rows in the second table
            sums = lower(sums, torch.from_numpy(keys.a if side else keys.own), below)
        ptr, row, count = sums.ptr.numpy(), sums.row.numpy(), sums.count.numpy()
        found[table], at = KeyTable.from_arrays(np.zeros(len(ptr) - 1, np.int32), ptr, row, count), table
    return found
