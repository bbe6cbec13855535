"""Tensors of one shape added up in one pass, not two at a time: terms of a sum forwards, gradients of several readers back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from enfa.nn.ops.function import applied, backward_once
from enfa.nn.triton.launch import cdiv, kernel
from enfa.nn.triton.sums import accumulator

__all__ = ["add_up", "fan_out"]

MOST = 4
BLOCK = 1024


@kernel(do_not_specialize=["size"])
def _add_up_kernel(a, b, c, d, out, size, COUNT: tl.constexpr, ACC: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    here = at < size
    total = tl.load(a + at, here, 0).to(ACC) + tl.load(b + at, here, 0).to(ACC)
    if COUNT > 2:
        total += tl.load(c + at, here, 0).to(ACC)
    if COUNT > 3:
        total += tl.load(d + at, here, 0).to(ACC)
    tl.store(out + at, total.to(out.dtype.element_ty), here)


def _added(terms: Sequence[Tensor]) -> Tensor:
    """From the first to the last; MOST at a time."""
    if len(terms) == 1:
        return terms[0]
    some, rest = [term.contiguous() for term in terms[:MOST]], terms[MOST:]
    out = torch.empty_like(some[0])
    if out.numel():
        _add_up_kernel[(cdiv(out.numel(), BLOCK),)](
            *some, *some[:1] * (MOST - len(some)), out, out.numel(), COUNT=len(some), ACC=accumulator(out.dtype), BLOCK=BLOCK,
            num_warps=4,
        )  # fmt: skip
    return _added([out, *rest])


class _AddUp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *terms: Tensor) -> Tensor:
        return _added(terms)

    @staticmethod
    @backward_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return tuple(grad if wanted else None for wanted in ctx.needs_input_grad)


class _FanOut(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, count: int) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)  # for operations on other streams, which may read it until their gradients are there
        return tuple(x.view_as(x) for _ in range(count))

    @staticmethod
    @backward_once
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None]:
        there = [grad for grad in grads if grad is not None]
        return _added(there) if there else None, None


def add_up(*terms: Tensor) -> Tensor:
    """The sum of two or more tensors of one shape."""
    return applied(_AddUp, *terms)


def fan_out(x: Tensor, count: int) -> tuple[Tensor, ...]:
    """x itself, for each of ``count`` operations that read it."""
    return applied(_FanOut, x, count)
