"""Joining the distinct rows of two sets of graphs: each key is translated, then looked up."""

import numpy as np

from enfa.plan.rows.distinct import StepRows
from enfa.plan.step import Program

__all__ = ["merge_steps"]

_NONE = np.zeros(0, np.int32)


def merge_steps(into: list[StepRows], new: list[StepRows], program: Program) -> None:
    """Add the rows of ``new``, of the same program, policy and kinds. Its graphs come after those of ``into``.

    Cost: one look-up per distinct row of ``new``.
    """
    done: list[np.ndarray] = []
    for step, mine, theirs in zip(program.steps, into, new):
        own, item = (_NONE if read is None else done[read] for read in (step.own, step.item))  # an empty one changes nothing
        if mine.lists is not None and theirs.lists is not None:
            item = mine.lists.absorb(theirs.lists, item_map=item)
        row = mine.keys.absorb(theirs.keys, own, item)
        done.append(row)
        mine.affected = None if mine.affected is None or theirs.affected is None else mine.affected + theirs.affected
        if mine.place is not None and theirs.place is not None:
            mine.place = np.concatenate([mine.place, row[theirs.place]])
        if mine.count_ptr is not None and theirs.count_ptr is not None:
            assert mine.count_row is not None and theirs.count_row is not None
            assert mine.count is not None and theirs.count is not None
            mine.count_ptr = np.concatenate([mine.count_ptr, mine.count_ptr[-1] + theirs.count_ptr[1:]])
            mine.count_row = np.concatenate([mine.count_row, row[theirs.count_row]])
            mine.count = np.concatenate([mine.count, theirs.count])
