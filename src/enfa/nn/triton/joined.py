"""scale * x + y[index]: rows of a smaller table added to those of a larger one, without writing them out there first."""

from __future__ import annotations

from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from enfa.nn.ops.function import applied, backward_once
from enfa.nn.triton.launch import cdiv, kernel, next_power_of_2
from enfa.nn.triton.sums import accumulator, triton_sums
from enfa.plan.derived.order import Lists

__all__ = ["joined_sum"]

BLOCK = 4096


@kernel(do_not_specialize=["R"])
def _joined_kernel(
    x, y, scale, index, out, R,
    C: tl.constexpr, SCALED: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    mask = (rows < R)[:, None] & (cols < C)[None, :]
    other = tl.load(index + rows, rows < R, 0).to(tl.int64)
    place = rows.to(tl.int64)[:, None] * C + cols[None, :]
    value = tl.load(x + place, mask, 0).to(ACC)
    if SCALED:
        value *= tl.load(scale).to(ACC)
    value += tl.load(y + other[:, None] * C + cols[None, :], mask, 0).to(ACC)
    tl.store(out + place, value.to(out.dtype.element_ty), mask)


@kernel(do_not_specialize=["size"])
def _product_kernel(grad, x, scale, out, shares, size, ACC: tl.constexpr, BLOCK: tl.constexpr):
    """scale * grad, and a program's share of the sum of grad * x."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    here = at < size
    above = tl.load(grad + at, here, 0).to(ACC)
    value = tl.load(x + at, here, 0).to(ACC)
    tl.store(out + at, (above * tl.load(scale).to(ACC)).to(out.dtype.element_ty), here)
    # a row that nothing reads may hold anything
    tl.store(shares + tl.program_id(0), tl.sum(tl.where(above == 0, 0, above * value), 0))


class _Joined(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, scale: Tensor | None, index: Tensor, back: Lists) -> Tensor:
        x, y = x.contiguous(), y.contiguous()
        (rows, channels), out = x.shape, torch.empty_like(x)
        cols = min(128, max(16, next_power_of_2(channels)))
        shape = {"ROWS": 1024 // cols, "COLS": cols, "num_warps": 2}
        if out.numel():
            _joined_kernel[(cdiv(rows, shape["ROWS"]), cdiv(channels, cols))](
                x, y, x if scale is None else scale, index, out, rows,
                C=channels, SCALED=scale is not None, ACC=accumulator(x.dtype), **shape,
            )  # fmt: skip
        ctx.back = back
        ctx.save_for_backward(*(() if scale is None else (x, scale)))
        return out

    @staticmethod
    @backward_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        grad = grad.contiguous()
        of_x, of_scale = _scaled(grad, *ctx.saved_tensors) if ctx.saved_tensors else (grad, None)
        return of_x, triton_sums(grad, ctx.back) if ctx.needs_input_grad[1] else None, of_scale, None, None


def _scaled(grad: Tensor, x: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of x and of the scale."""
    size, of_x = x.numel(), torch.empty_like(x)
    shares = x.new_empty(cdiv(size, BLOCK), dtype=torch.float64 if x.dtype == torch.float64 else torch.float32)
    if size:
        _product_kernel[(len(shares),)](grad, x, scale, of_x, shares, size, ACC=accumulator(x.dtype), BLOCK=BLOCK, num_warps=4)
    return of_x, shares.sum().to(scale.dtype).view_as(scale)


def joined_sum(x: Tensor, y: Tensor, scale: Tensor | None, index: Tensor, back: Lists) -> Tensor:
    """[R, C]: ``scale * x + y[index]``; ``scale`` is one number, ``back`` the index transposed."""
    return applied(_Joined, x, y, scale, index, back)
