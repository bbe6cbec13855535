"""Layers with several terms: what each of them reads, where it is computed, and their sum, in few passes over the rows.

Terms that do not read each other run on streams beside each other where a whole step is captured as a CUDA graph: one kernel
after the other leaves processors idle at the end of each, while its last programs run. Backwards autograd runs every
operation on the stream that it ran on forwards, and lets streams wait for each other where one reads what another has
written. What is computed, and in which order it is added up, is the same on one stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from enfa.nn.cuda.side_stream import may_part
from enfa.nn.ops.norm import process_group
from enfa.nn.rowwise.fused import HeldNorm
from enfa.nn.rowwise.held import holds, settle
from enfa.nn.rowwise.rows import Rows
from enfa.nn.triton import accelerated
from enfa.plan.derived.maps import readers
from enfa.plan.step import Step

__all__ = ["Branches", "added", "computed", "fan", "plus_spread", "started"]


@cache
def _stream(device: torch.device, number: int) -> Any:
    """The same for all steps, as libraries keep memory for every stream; as urgent as the stream of the chain of layers."""
    return torch.cuda.Stream(device, priority=-1)


class Branches:
    """``with Branches(h, modules) as beside: with beside(): a = computed(...)``, and the same for others, none of which reads
    what another computes.

    What is computed outside of the inner blocks is beside them all. Behind the outer block all may be read. Autograd lets go of
    what a branch has saved as soon as Python has run it backwards, when its stream may still read it, and another stream
    could write there. So branches read ``h`` by way of :func:`fan`, which keeps it until the gradients of all are there; and
    whatever else they read that was computed before is named: ``beside(edge)``.

    ``modules``: those that branches run. Where two have a buffer in common, or wait for other processes, nothing parts.
    """

    def __init__(self, h: Rows, *modules: nn.Module | None) -> None:
        self.h, self._used = h.value, list[Any]()
        self._parts = may_part() and accelerated(self.h) and process_group() is None and _disjoint(modules)

    def __enter__(self) -> Branches:
        if self._parts:
            settle()  # what they read is computed before they part: a branch looks at its values after it has waited for them
            if hasattr(torch.autograd.graph, "set_warn_on_accumulate_grad_stream_mismatch"):  # since PyTorch 2.9
                torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)  # they are meant to differ
        return self

    @contextmanager
    def __call__(self, *read: Rows | None) -> Iterator[None]:
        if not self._parts:
            yield
            return
        stream = _stream(self.h.device, len(self._used))
        stream.wait_stream(torch.cuda.current_stream(self.h.device))
        self._used.append(stream)
        kept_by_nothing = [] if self.h.requires_grad else [self.h]
        for value in (*kept_by_nothing, *(rows.value for rows in read if rows is not None)):
            value.record_stream(stream)
        with torch.cuda.stream(stream):
            yield

    def __exit__(self, *_: Any) -> None:
        for stream in self._used:
            torch.cuda.current_stream(self.h.device).wait_stream(stream)


def _disjoint(modules: tuple[nn.Module | None, ...]) -> bool:
    buffers = [id(buffer) for module in modules if module is not None for buffer in module.buffers()]
    return len(buffers) == len(set(buffers))


def computed(h: Any) -> Any:
    """The same Rows, not held back any longer: computed here, on this stream."""
    h.value  # noqa: B018
    return h


def started(h: Any) -> Any:
    """The same Rows, behind a norm, all but the norm itself computed here, on this stream: that waits for what follows it."""
    if isinstance(h.held, HeldNorm) and accelerated(h.held.copies):
        h.held.later(False)
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
    bag = first.bag
    alike = all(bag.numbered_alike(first.number, other.number) and first.dtype == other.dtype for other in terms)
    if alike and holds(first) and accelerated(first.value):
        from enfa.nn.triton.several import add_up

        return Rows(add_up(*(other.value for other in terms)), bag, bag.common(terms, "+").number)
    return sum(terms[1:], first)


def plus_spread(h: Rows, of: Rows, scale: Tensor | None = None, table: int | None = None) -> Rows:
    """``scale * h + bag.spread(of)``, in the table where both meet. ``table``: where the latter meets rows of that table
    instead; h's rows must be found there, too. The result has the type of both, whatever that of the scale, one number."""
    bag = h.bag
    spread = bag.step(Step("spread", "pairs", (of.number,)))
    number = bag.meeting(h if table is None else Rows(h.value, bag, table), Rows(of.value, bag, spread), "+")
    alike = bag.numbered_alike(number, spread) and bag.numbered_alike(number, h.number) and h.dtype == of.dtype
    if not alike or not holds(h) or not accelerated(h.value):
        mine, other = bag.moved(h, number), bag.moved(bag.spread(of), number)
        found = mine + other if scale is None else torch.addcmul(other, mine, scale)
        return Rows(found.to(torch.promote_types(h.dtype, of.dtype)), bag, number)
    from enfa.nn.triton.joined import joined_sum

    there = bag.tables[spread]
    assert there.own is not None
    back = readers(there.own, len(of.value), there.cache, "own")
    return Rows(joined_sum(h.value, of.value, scale, there.own, back), bag, number)
