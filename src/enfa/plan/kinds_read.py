"""Edge kinds that no message of a plan is of.

A batch has the numbers of its dataset for edge kinds, and the subgraphs may have lost the last edge of a kind. What a model
computes of a kind may not be defined for others (a root, a logarithm), or may change what it looks up (``nn.Embedding`` with
``max_norm``). The conventional model never sees them, so they stand here as one that is read.
"""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from enfa.plan.arrays import tensor
from enfa.plan.step import Program, Step
from enfa.plan.table import Table

__all__ = ["edge_rows_read"]


def edge_rows_read(
    program: Program, tables: Sequence[Table], edge_attr: np.ndarray | None, edge_marks: np.ndarray
) -> tuple[Tensor | None, Tensor]:
    """``edge_rows`` and ``edge_mark_rows`` of a plan with these tables. Cost: a look at the first messages along all edges."""
    if len(edge_marks) > 1:
        read = _read(program, tables, len(edge_marks))
        if read.any() and not read.all():
            kinds = np.where(read, np.arange(len(read)), np.argmax(read))
            edge_attr, edge_marks = None if edge_attr is None else edge_attr[kinds], edge_marks[kinds]
    return None if edge_attr is None else tensor(edge_attr), tensor(edge_marks)


def _read(program: Program, tables: Sequence[Table], kinds: int) -> np.ndarray:
    read = np.zeros(kinds, bool)
    for step, table in zip(program.steps, tables):
        if table.links is not None and step.edges and not _as_before(step, program.steps[step.reads[0]]):
            read[table.links.in_edge.numpy()] = True
            if read.all():
                break
    return read


def _as_before(step: Step, before: Step) -> bool:
    """Whether every row's own row has messages of the same edges."""
    return before.op == "propagate" and before.edges and (before.kind, before.along) == (step.kind, step.along)
