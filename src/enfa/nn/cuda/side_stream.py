"""Work of a captured step that nothing waits for before its end, beside the chain of layers.

The gradient of a weight is needed by the optimiser only. Backwards, the layers become smaller and smaller, until the last
kernels leave most of a GPU idle; there the weights' gradients of large layers find room. They go to a stream of lower
priority, which the chain waits for once, at its end. What is computed, and in which order, stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import local
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

__all__ = ["Aside", "aside", "lend", "may_part", "streams"]

T = TypeVar("T")
MOST = 2**30  # bytes that may wait: beyond that the chain waits instead


@cache
def streams(device: torch.device) -> tuple[Any, Any]:
    """For the chain, and for what stands aside. The same for all steps: libraries keep memory for every stream."""
    return torch.cuda.Stream(device, priority=-1), torch.cuda.Stream(device)


class Aside:
    """A stream beside others, and what it reads until it is waited for. Without a stream it runs all at once.

    ``whole``: for a step that is captured as one graph, backward pass included.
    """

    def __init__(self, stream: Any = None, whole: bool = False) -> None:
        self.stream, self.whole = stream, whole
        self.lent: dict[int, Tensor] = {}
        self.held: dict[Any, list[Any]] = {}  # by the stream that has handed it over

    def run(self, work: Callable[..., T], *read: Tensor | None) -> T:
        """``work(*read)``, some time before :meth:`wait` returns."""
        if self.stream is None:
            return work(*read)
        current = torch.cuda.current_stream()
        mine = self.held.setdefault(current, [])
        if sum(x.nbytes for held in (*self.held.values(), read) for x in held if x is not None) > MOST and mine:
            # nothing of other streams, which have not waited: their memory would be used again
            current.wait_stream(self.stream)
            mine.clear()
        mine.extend(read)
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            return work(*read)

    def wait(self) -> None:
        if self.held:  # a stream that has done nothing is not part of what is captured
            torch.cuda.current_stream().wait_stream(self.stream)
            self.held.clear()


class _Lent(torch.autograd.Function):
    """A parameter itself. Backwards these come last, because they came first; the first of them waits for all.

    One each: a parameter that nothing reads must not be told of a gradient that is None.
    """

    @staticmethod
    def forward(ctx: Any, beside: Aside, parameter: Tensor) -> Tensor:
        ctx.beside = beside
        ctx.set_materialize_grads(False)
        return parameter.view_as(parameter)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor | None) -> tuple[None, Tensor | None]:
        ctx.beside.wait()
        return None, grad


_AT_ONCE = Aside()


class _Current(local):
    """Of this thread: another one may train another model."""

    beside = _AT_ONCE


_current = _Current()


def may_part() -> bool:
    """Whether what is computed now is part of a step that is captured as one graph."""
    return _current.beside.whole


@contextmanager
def aside(model: nn.Module, beside: Aside | None = None, whole: bool = False) -> Iterator[None]:
    """Linears of the model that are computed in here may compute their own gradients aside, if this is being captured."""
    device = next(model.parameters()).device
    if beside is None and device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        beside = Aside(streams(device)[1], whole)
    if beside is not None:
        linears = [m for m in model.modules() if isinstance(m, nn.Linear)]
        own = {id(p): p for m in linears for p in m.parameters(recurse=False) if p.requires_grad}
        beside.lent = {i: _Lent.apply(beside, p) for i, p in own.items()}
    before, _current.beside = _current.beside, beside or _AT_ONCE
    try:
        yield
    finally:
        _current.beside = before
        if beside is not None:
            beside.lent = {}  # they know of it: parameters would keep the nodes of this stream until a garbage collection


def lend(weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor | None, Aside]:
    """A linear's parameters, and where their gradients are to be computed, as they may be waited for.

    Once each: two gradients of one parameter would be added up before they are waited for.
    """
    beside = _current.beside
    lent = beside.lent
    if id(weight) not in lent or (bias is not None and id(bias) not in lent):
        return weight, bias, _AT_ONCE
    return lent.pop(id(weight)), None if bias is None else lent.pop(id(bias)), beside
