"""dropout(relu(norm(x)[own] + y[index])): what ends a layer, in one pass over its rows, and one backwards.

The norm has taken its statistics and left its rows as they are (``later``): they are normalised here. What the ReLU and the
mask let through is kept for the way back, a byte for each number: what comes out may be written into.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import torch
import triton.language as tl
from torch import Tensor

from enfa.nn.ops.function import applied, backward_once
from enfa.nn.triton.dropout import kept, salt_of, scale_of, threshold_of
from enfa.nn.triton.launch import Launch, cdiv, kernel, next_power_of_2
from enfa.nn.triton.linears.wide import Normed
from enfa.nn.triton.norm import scaling_of
from enfa.nn.triton.norm_kernels import load_scaling, normalised
from enfa.nn.triton.sums import accumulator, triton_sums
from enfa.plan.derived.order import Lists

__all__ = ["Drop", "Way", "layer_end"]

BLOCK = 4096


class Way(NamedTuple):
    """For every row of a table one of another, and the same transposed, where gradients are wanted."""

    to: Tensor
    back: Lists | None


class Drop(NamedTuple):
    """Dropout with probability ``p``: what rows are, and a number that was drawn for the call."""

    identity: Tensor
    seed: Tensor
    p: float


@kernel(do_not_specialize=["R"])
def _end_kernel(
    x, own, copies, saved, weight, bias, y, index, of, identity, seed, out, through, R,
    C: tl.constexpr, AFFINE: tl.constexpr, MOVED: tl.constexpr, JOINED: tl.constexpr, ALIKE: tl.constexpr, RELU: tl.constexpr,
    THRESHOLD: tl.constexpr, SCALE: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """JOINED: y is added, by two ways one after the other, or by the second alone (ALIKE). SCALE 1: nothing is dropped."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    inside, there = cols < C, rows < R
    mask = there[:, None] & inside[None, :]
    mean, rstd = tl.load(saved + cols, inside, 0), tl.load(saved + C + cols, inside, 0)
    scale, shift = load_scaling(rstd, weight, bias, cols, inside, AFFINE, ACC, COLS)
    mine = rows
    if MOVED:
        mine = tl.load(own + rows, there, 0)
    counted = (tl.load(copies + mine, there, 0) > 0)[:, None]
    value = tl.load(x + mine.to(tl.int64)[:, None] * C + cols[None, :], mask & counted, 0).to(ACC)
    # a row that stands for nothing may hold anything
    value = normalised(tl.where(counted, value, mean[None, :]), mean, scale, shift, False)
    if JOINED:
        other = rows
        if not ALIKE:
            other = tl.load(index + rows, there, 0)
        other = tl.load(of + other, there, 0).to(tl.int64)
        value += tl.load(y + other[:, None] * C + cols[None, :], mask, 0).to(ACC)
    if RELU:
        value = tl.where(value <= 0, 0, value)  # not the maximum, which hides NaN
    if SCALE != 1:
        value *= kept(identity, rows, there, cols, salt_of(seed), THRESHOLD, SCALE)
    place = rows.to(tl.int64)[:, None] * C + cols[None, :]
    tl.store(out + place, value.to(out.dtype.element_ty), mask)
    if RELU:
        tl.store(through + place, tl.where(value <= 0, 0, 1).to(tl.uint8), mask)


@kernel(do_not_specialize=["size"])
def _above_kernel(grad, through, above, size, SCALE: tl.constexpr, ACC: tl.constexpr, BLOCK: tl.constexpr):
    """The gradient in front of the ReLU."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    here = at < size
    value = tl.load(grad + at, here, 0).to(ACC) * SCALE
    value = tl.where(tl.load(through + at, here, 0) > 0, value, 0)
    tl.store(above + at, value.to(above.dtype.element_ty), here)


@cache
def _ending(channels: int, dtype: torch.dtype, p: float, *switches: bool) -> tuple[Launch, int, int]:
    """And the rows of a tile, and how many blocks of columns there are."""
    cols = min(128, max(16, next_power_of_2(channels)))
    shape = {"ROWS": 2048 // cols, "COLS": cols, "num_warps": 4}
    more = dict(zip(("AFFINE", "MOVED", "JOINED", "ALIKE", "RELU"), switches))
    drawn = {"THRESHOLD": threshold_of(p), "SCALE": scale_of(p)}
    return _end_kernel.launch(C=channels, ACC=accumulator(dtype), **more, **drawn, **shape), shape["ROWS"], cdiv(channels, cols)


@cache
def _above(p: float, dtype: torch.dtype) -> Launch:
    return _above_kernel.launch(SCALE=scale_of(p), ACC=accumulator(dtype), BLOCK=BLOCK, num_warps=8)


class _End(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, y: Tensor | None, norm: Normed, own: Way | None, ways: tuple[Way | None, Way] | None,
        rows: int, relu: bool, drop: Drop | None,
    ) -> Tensor:  # fmt: skip
        x, p = x.contiguous(), 0.0 if drop is None else drop.p
        assert relu or not p
        first, second = ways or (None, None)
        identity, seed = (x, x) if drop is None else drop[:2]
        indices = (x if way is None else way.to for way in (first, second))
        out = x.new_empty(rows, x.shape[1])
        through = torch.empty_like(out, dtype=torch.uint8) if relu else None
        there = norm.weight is not None, own is not None, y is not None, first is None, relu
        launch, tile, across = _ending(x.shape[1], x.dtype, p, *there)
        if out.numel():
            launch(
                (cdiv(rows, tile), across), x, x if own is None else own.to, norm.copies, norm.saved,
                *scaling_of(norm.saved, norm.weight, norm.bias), x if y is None else y.contiguous(), *indices, identity, seed,
                out, out if through is None else through, rows,
            )  # fmt: skip
        ctx.save_for_backward(through)
        ctx.p, ctx.own, ctx.ways = p, own, ways
        return out

    @staticmethod
    @backward_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        grad, (through,) = grad.contiguous(), ctx.saved_tensors
        if through is not None:
            above = torch.empty_like(grad)
            if size := grad.numel():
                _above(ctx.p, grad.dtype)((cdiv(size, BLOCK),), grad, through, above, size)
            grad = above
        of_x = of_y = None
        if ctx.needs_input_grad[0]:
            of_x = grad if ctx.own is None else triton_sums(grad, ctx.own.back)
        if ctx.needs_input_grad[1]:
            of_y = grad
            for way in ctx.ways:
                of_y = of_y if way is None else triton_sums(of_y, way.back)
        return of_x, of_y, *(None,) * 6


def layer_end(
    x: Tensor, norm: Normed, rows: int, relu: bool, *, own: Way | None = None, y: Tensor | None = None,
    ways: tuple[Way | None, Way] | None = None, drop: Drop | None = None,
) -> Tensor:  # fmt: skip
    """[rows, C]: of ``x`` as it is before the norm, which ``rows`` rows read by the way ``own`` (None: each its own), plus
    those of ``y``, which they read by two ``ways``. Dropout wants a ReLU before it. The gradient of x is that of normalised
    rows, as the norm expects it, which knows its weight's and its bias's itself."""
    return applied(_End, x, y, norm, own, ways, rows, relu, drop)
