"""Joining the distinct rows of two sets of graphs: each key is translated, then looked up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from enfa.plan.steps.distinct import StepRows
from enfa.plan.steps.step import Program, Step

__all__ = ["merge_steps"]

_NONE = np.zeros(0, np.int32)


@dataclass(frozen=True)
class _Maps:
    own: np.ndarray
    item: np.ndarray


def _maps(step: Step, done: list[np.ndarray]) -> _Maps:
    """What translates own rows and items of a step's keys; an empty map leaves numbers as they are."""
    read = [done[r] for r in step.reads]
    if step.op in ("propagate", "spread", "diagonal"):
        return _Maps(read[0], read[0])
    if step.op == "join":
        return _Maps(read[0], read[1])
    return _Maps(_NONE, read[0] if read else _NONE)


def merge_steps(into: list[StepRows], new: list[StepRows], program: Program) -> None:
    """Add the rows of ``new``, of the same program, policy and kinds. Its graphs come after those of ``into``.

    Cost: one look-up per distinct row of ``new``.
    """
    done: list[np.ndarray] = []
    for step, mine, theirs in zip(program.steps, into, new):
        maps = _maps(step, done)
        if mine.lists is not None and theirs.lists is not None:
            maps = _Maps(_NONE, mine.lists.absorb(theirs.lists, item_map=maps.item))
        row = mine.keys.absorb(theirs.keys, maps.own, maps.item)
        done.append(row)
        if mine.place is not None and theirs.place is not None:
            mine.place = np.concatenate([mine.place, row[theirs.place]])
        if mine.count_ptr is not None and theirs.count_ptr is not None:
            assert mine.count_row is not None and theirs.count_row is not None
            assert mine.count is not None and theirs.count is not None
            mine.count_ptr = np.concatenate([mine.count_ptr, mine.count_ptr[-1] + theirs.count_ptr[1:]])
            mine.count_row = np.concatenate([mine.count_row, row[theirs.count_row]])
            mine.count = np.concatenate([mine.count, theirs.count])
