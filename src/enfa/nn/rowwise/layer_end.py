"""The end of a layer, held back: rows behind a norm, rows of nodes or subgraphs that are added to them, a ReLU and dropout.

Each of them writes a table that the next one reads, and of rows of two tables each is first brought to a third one. Our own
kernels compute them in one pass.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from enfa.nn.ops.segment import gather
from enfa.nn.rowwise.fused import HeldNorm, waiting
from enfa.nn.rowwise.held import Held, holds
from enfa.nn.rowwise.rows import Rows
from enfa.nn.triton import accelerated
from enfa.plan.derived.maps import readers
from enfa.plan.derived.needs import way

if TYPE_CHECKING:
    from enfa.nn.triton.layer_end import Drop, Way

__all__ = ["HeldJoin", "HeldSpread", "dropped"]


class HeldSpread(Held):
    """Rows of nodes or subgraphs, for the pairs of the table ``number``."""

    def __init__(self, of: Rows, number: int) -> None:
        super().__init__([of], of.width)
        self.number = number

    def computed(self, relu: bool) -> Tensor:
        (of,) = self.reads
        table = of.bag.tables[self.number]
        assert table.own is not None
        found = gather(of.value, table.own, table.cache, "own")
        return torch.relu(found) if relu else found


class HeldJoin(Held):
    """Rows behind a norm and rows that are spread, added up in the table ``number``, in which both are found."""

    def __init__(self, normed: Rows, spread: Rows, number: int) -> None:
        super().__init__([normed, spread], normed.width)
        self.number = number

    @staticmethod
    def of(one: Rows, other: Rows) -> HeldJoin | None:
        """Whichever of the two is behind a norm."""
        if one.bag is not other.bag or one.dtype != other.dtype or one.kind != other.kind or one.ndim != 2 or other.ndim != 2:
            return None
        for normed, spread in ((one, other), (other, one)):
            held = waiting(normed), waiting(spread)
            if isinstance(held[0], HeldNorm) and isinstance(held[1], HeldSpread) and normed.width == spread.width:
                return HeldJoin(normed, spread, one.bag.meeting(normed, spread, "+"))
        return None

    def computed(self, relu: bool) -> Tensor:
        found = self.ended(relu, None)
        if found is not None:
            return found
        normed, spread = (rows.bag.moved(rows, self.number) for rows in self.reads)
        return torch.relu(normed + spread) if relu else normed + spread

    def ended(self, relu: bool, drop: Drop | None) -> Tensor | None:
        """In one pass; None where something has asked for the values of one of the two, or plain operators compute them."""
        norm, spread = (waiting(rows) for rows in self.reads)
        if not isinstance(norm, HeldNorm) or not isinstance(spread, HeldSpread):
            return None
        (of,) = spread.reads
        y, table = of.value, of.bag.tables[spread.number]  # first: it may read what the norm does
        later = _later(norm)
        if later is None:
            return None
        x, about = later
        own, first = (_way(rows, self.number, t.requires_grad) for rows, t in zip(self.reads, (x, y)))
        assert table.own is not None
        back = readers(table.own, len(y), table.cache, "own") if y.requires_grad else None
        second = _kernels().Way(table.own, back)
        count = of.bag.num_rows(self.number)
        return _kernels().layer_end(x, about, count, relu, own=own, y=y, ways=(first, second), drop=drop)


def dropped(rows: Rows, drop: Drop) -> Tensor | None:
    """Rows behind a ReLU that are held back, dropped in the pass that computes them; None where that cannot be done."""
    held = rows.held
    if held is None or not rows.activated or held.found or not held.as_now() or not holds(rows):
        return None
    if held.stale():
        return None  # reading their values says so
    if isinstance(held, HeldJoin):
        return held.ended(True, drop)
    later = _later(held) if isinstance(held, HeldNorm) else None
    return None if later is None else _kernels().layer_end(*later, rows.bag.num_rows(rows.number), True, drop=drop)


def _later(norm: HeldNorm) -> Any:
    return norm.later(False) if accelerated(norm.copies) else None


def _way(rows: Rows, number: int, back: bool) -> Way | None:
    """From the rows of a table to these; None where they are numbered alike."""
    bag = rows.bag
    if bag.numbered_alike(number, rows.number):
        return None
    index: Any = way(bag, number, rows.number)
    name = f"way {number} {rows.number}"
    return _kernels().Way(index, readers(index, bag.num_rows(rows.number), bag.cache, name) if back else None)


@cache
def _kernels() -> Any:
    """Imported where they are called; once, because a statement that imports takes a microsecond each time."""
    from enfa.nn.triton import layer_end

    return layer_end
