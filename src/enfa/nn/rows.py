"""Which rows are in flight: how modules deep inside a conv learn how often each row counts.

The executor states it around every layer. Modules that must know (counted BatchNorm, keyed dropout) ask here, so
users' convs need no change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torch import Tensor

__all__ = ["Rows", "current_rows", "rows_in_flight"]


@dataclass(frozen=True)
class Rows:
    """The rows that the modules called now work on."""

    copies: Tensor  # int32 or int64 [R]
    total: int  # sum of copies
    identity: Callable[[], Tensor]  # -> int64 [R], the same in every plan
    full: bool  # whether every row is a single (subgraph, node) pair


_stack: list[Rows] = []


@contextmanager
def rows_in_flight(rows: Rows) -> Iterator[None]:
    _stack.append(rows)
    try:
        yield
    finally:
        _stack.pop()


def current_rows() -> Rows | None:
    """The rows in flight, or None outside an executor (after pooling, say)."""
    return _stack[-1] if _stack else None
