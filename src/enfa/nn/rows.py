"""Which rows are in flight: how modules deep inside a conv learn how often each row counts.

The executor states it around every layer. Modules that must know (counted BatchNorm, keyed dropout) ask here, so
users' convs need no change. Every thread has its own rows in flight. In a backward pass, where checkpointing calls
modules again, :mod:`enfa.nn.recompute` finds those of the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import local

from torch import Tensor, nn

from enfa.nn.recompute import Call, backward_pass, first_call, leave

__all__ = ["Rows", "current_call", "current_rows", "made", "rows_in_flight", "rows_of"]


@dataclass(frozen=True)
class Rows:
    """The rows that the modules called now work on."""

    copies: Tensor  # int32 or int64 [R]
    total: int  # sum of copies
    identity: Callable[[], Tensor]  # -> int64 [R], the same in every plan
    full: bool  # whether every row is a single (subgraph, node) pair


class _Current(local):
    """Of this thread: another one may run another model, or the same."""

    call: Call | None = None


_current = _Current()


@contextmanager
def rows_in_flight(rows: Rows | None) -> Iterator[Call]:
    """``rows``: None around a whole model, so that what is outside of its layers is part of its call too."""
    before = _current.call
    call = _current.call = Call(rows, current_call())
    try:
        yield call
    finally:
        _current.call = before


def made(call: Call, out: Tensor, *read: Tensor | None) -> Tensor:
    """``out``, which a call made from what it read: a backward pass that gets there knows the call."""
    leave(call, out, read)
    return out


def current_call() -> Call | None:
    """Of this thread, and of this backward pass where it is in one: a pass begun in a layer may come to other layers."""
    call = _current.call
    return call if call is not None and call.task == backward_pass() else None


def current_rows() -> Rows | None:
    """The rows in flight, or None outside an executor (after pooling, say)."""
    call = current_call()
    return None if call is None else call.rows


def rows_of(module: nn.Module, needed: bool = True) -> Rows | None:
    """The rows in flight for a module that must know them; in a recomputation those of the first time.

    ``needed``: whether it cannot do without, if there were any.
    """
    call = current_call()
    if call is not None and call.rows is not None:
        if not getattr(module, "had_rows", False):
            module.had_rows = True  # type: ignore[assignment]
        call.note()
        return call.rows
    # a module that never had rows is one after pooling, or of somebody else's model
    if not needed or backward_pass() == -1 or not getattr(module, "had_rows", False):
        return None
    rows = first_call(module).rows
    if rows is None:
        raise RuntimeError(
            f"Expected the rows that {type(module).__name__} is computed again for, got a part of the graph that several "
            f"layers share; checkpoint the whole call of the model, as checkpoint(model, plan, use_reentrant=False)"
        )
    return rows
