"""Layers with several terms: what each of them reads, where it is computed, and their sum, in few passes over the rows.

Terms that do not read each other run on streams beside each other while a step is captured as a CUDA graph: one kernel after
the other leaves processors idle at the end of each, while its last programs run. Backwards autograd runs every operation on
the stream that it ran on forwards, and lets streams wait for each other where one reads what another has written. What is
computed, and in which order it is added up, is the same on one stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor

from enfa.nn.bag.bag import Bag
from enfa.nn.rowwise.held import holds, settle
from enfa.nn.rowwise.rows import Rows
from enfa.nn.triton import accelerated
from enfa.plan.derived.maps import readers
from enfa.plan.step import Step

__all__ = ["Branches", "added", "computed", "fan", "plus_spread"]


@cache
def _stream(device: torch.device, number: int) -> Any:
    """The same for all steps, as libraries keep memory for every stream; as urgent as the stream of the chain of layers."""
    return torch.cuda.Stream(device, priority=-1)


class Branches:
    """``with Branches(bag) as beside: with beside(): a = computed(...)``, and the same for others, none of which reads another.

    What is computed outside of the inner blocks is beside them all. Behind the outer block all may be read. A block reads
    Rows of :func:`fan`, which keeps them until all have been read backwards, too; whatever else it reads that was computed
    before is named: ``beside(edge)``. Memory that a stream still reads would else be written into by another.
    """

    def __init__(self, bag: Bag) -> None:
        self.device, self._used = bag.device, list[Any]()
        self._apart = self.device.type == "cuda" and torch.cuda.is_current_stream_capturing()

    def __enter__(self) -> Branches:
        if self._apart:
            settle()  # what they read is computed before they part
        return self

    @contextmanager
    def __call__(self, *read: Rows | None) -> Iterator[None]:
        if not self._apart:
            yield
            return
        stream = _stream(self.device, len(self._used))
        stream.wait_stream(torch.cuda.current_stream(self.device))
        self._used.append(stream)
        for rows in read:
            if rows is not None:
                rows.value.record_stream(stream)
        with torch.cuda.stream(stream):
            yield

    def __exit__(self, *_: Any) -> None:
        for stream in self._used:
            torch.cuda.current_stream(self.device).wait_stream(stream)


def computed(h: Any) -> Any:
    """The same Rows, not held back any longer: computed here, on this stream."""
    h.value  # noqa: B018
    return h


def fan(h: Rows, count: int) -> list[Any]:
    """The same Rows for each of ``count`` operations: the gradients that come from these are added up in one pass."""
    if not accelerated(h.value) or not h.value.requires_grad:
        return [h] * count
    from enfa.nn.triton.several import fan_out

    return [h.of(value) for value in fan_out(h.value, count)]


def added(*terms: Rows) -> Rows:
    """The sum of Rows, in one pass where they are of one table."""
    first: Any = terms[0]
    bag, value = first.bag, first.value
    if holds(first) and accelerated(value) and all(bag.numbered_alike(first.number, other.number) for other in terms):
        from enfa.nn.triton.several import add_up

        return Rows(add_up(*(other.value for other in terms)), bag, bag.common(terms, "+").number)
    return sum(terms[1:], first)


def plus_spread(h: Rows, of: Rows, scale: Tensor | None = None, table: int | None = None) -> Rows:
    """``scale * h + bag.spread(of)``, in the table of both. ``table``: where the latter meets rows of this one, in which h is
    found, too."""
    bag = h.bag
    spread = bag.step(Step("spread", "pairs", (of.number,)))
    number = bag.meeting(h if table is None else Rows(h.value, bag, table), Rows(of.value, bag, spread), "+")
    alike = bag.numbered_alike(number, spread) and bag.numbered_alike(number, h.number)
    if not alike or not holds(h) or not accelerated(h.value):
        mine, other = bag.moved(h, number), bag.moved(bag.spread(of), number)
        return Rows(mine + other if scale is None else torch.addcmul(other, mine, scale), bag, number)
    from enfa.nn.triton.joined import joined_sum

    there = bag.tables[spread]
    assert there.own is not None
    back = readers(there.own, len(of.value), there.cache, "own")
    return Rows(joined_sum(h.value, of.value, scale, there.own, back), bag, number)
