"""Counted BatchNorm and the ReLU behind it: two kernels forwards, two backwards.

The first kernel of each pair takes column sums over a share of the rows per program; the second starts by adding up
those shares, in a fixed order, and then normalises its rows. Mean and variance are merged by Chan's formula, so nothing
cancels, and are float32 whatever the rows are (float64 for float64 rows). The running buffers are updated on the way.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from enfa.nn.triton.sums import accumulator

__all__ = ["counted_norm"]


@triton.jit(do_not_specialize=["R", "share"])
def _statistics_kernel(
    x, copies, mean_parts, square_parts, count_parts, R, share,
    C: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """Weighted mean and sum of squared deviations of a share of the rows, by Welford's update."""
    part = tl.program_id(0)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    inside = cols < C
    end = tl.minimum((part + 1) * share, R)
    count = tl.zeros((ROWS,), ACC)
    mean = tl.zeros((ROWS, COLS), ACC)
    square = tl.zeros((ROWS, COLS), ACC)
    for start in range(part * share, end, ROWS):
        rows = start + tl.arange(0, ROWS)
        c = tl.load(copies + rows, rows < end, 0).to(ACC)
        # a row that nobody counts is not even read: it may hold anything
        counted = (c > 0)[:, None] & inside[None, :]
        value = tl.load(x + rows.to(tl.int64)[:, None] * C + cols[None, :], counted, 0).to(ACC)
        count += c
        away = tl.where(counted, value - mean, 0)
        mean += away * (c / tl.maximum(count, 1))[:, None]
        square += c[:, None] * away * (value - mean)
    total = tl.sum(count, 0)
    middle = tl.sum(mean * count[:, None], 0) / tl.maximum(total, 1)
    away = mean - middle[None, :]
    spread = tl.sum(square + count[:, None] * away * away, 0)
    tl.store(mean_parts + part * C + cols, middle, inside)
    tl.store(square_parts + part * C + cols, spread, inside)
    if tl.program_id(1) == 0:
        tl.store(count_parts + part, total)


@triton.jit(do_not_specialize=["R", "share", "num_parts"])
def _normalise_kernel(
    x, out, mean_parts, square_parts, count_parts, weight, bias, saved, total_out, running_mean, running_var, batches,
    R, share, num_parts, constants,
    C: tl.constexpr, AFFINE: tl.constexpr, RELU: tl.constexpr, RUNNING: tl.constexpr,
    ACC: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    inside = cols < C
    parts = tl.arange(0, PARTS)
    there = parts < num_parts
    at = parts[:, None] * C + cols[None, :]
    count = tl.load(count_parts + parts, there, 0)
    total = tl.sum(count, 0)
    means = tl.load(mean_parts + at, there[:, None] & inside[None, :], 0)
    mean = tl.sum(means * count[:, None], 0) / tl.maximum(total, 1)
    away = means - mean[None, :]
    squares = tl.load(square_parts + at, there[:, None] & inside[None, :], 0)
    var = tl.sum(squares + count[:, None] * away * away, 0) / tl.maximum(total, 1)
    rstd = 1 / tl.sqrt(var + tl.load(constants))
    scale = rstd
    shift = tl.zeros((COLS,), ACC)
    if AFFINE:
        scale = rstd * tl.load(weight + cols, inside, 0).to(ACC)
        shift = tl.load(bias + cols, inside, 0).to(ACC)
    if program == 0:
        tl.store(saved + cols, mean, inside)
        tl.store(saved + C + cols, rstd, inside)
        tl.store(saved + 2 * C + cols, var, inside)
        if tl.program_id(1) == 0:
            tl.store(total_out, tl.maximum(total, 1))
        if RUNNING:
            momentum = tl.load(constants + 1)
            if total > 0:
                old = tl.load(running_mean + cols, inside, 0)
                tl.store(running_mean + cols, old + momentum * (mean - old), inside)
                old = tl.load(running_var + cols, inside, 0)
                unbiased = var * (total / tl.maximum(total - 1, 1))
                tl.store(running_var + cols, old + momentum * (unbiased - old), inside)
            if tl.program_id(1) == 0:
                tl.store(batches, tl.load(batches) + 1)
    end = tl.minimum((program + 1) * share, R)
    for start in range(program * share, end, ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows < end)[:, None] & inside[None, :]
        place = rows.to(tl.int64)[:, None] * C + cols[None, :]
        value = tl.load(x + place, mask, 0).to(ACC)
        value = (value - mean[None, :]) * scale[None, :] + shift[None, :]
        if RELU:
            value = tl.maximum(value, 0)
        tl.store(out + place, value.to(out.dtype.element_ty), mask)


@triton.jit
def _above(
    grad, x, place, mask, mean, rstd, scale, shift, RELU: tl.constexpr, ACC: tl.constexpr
):  # fmt: skip
    """Normalised rows, and the gradient that the ReLU let through."""
    centred = tl.load(x + place, mask, 0).to(ACC) - mean[None, :]
    above = tl.load(grad + place, mask, 0).to(ACC)
    if RELU:
        above = tl.where(centred * scale[None, :] + shift[None, :] > 0, above, 0)
    return above, centred * rstd[None, :]


@triton.jit(do_not_specialize=["R", "share", "num_parts"])
def _gradient_sums_kernel(
    grad, x, saved, weight, bias, parts_out, R, share, num_parts,
    C: tl.constexpr, AFFINE: tl.constexpr, RELU: tl.constexpr, ACC: tl.constexpr,
    ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    part = tl.program_id(0)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    inside = cols < C
    mean, rstd = tl.load(saved + cols, inside, 0), tl.load(saved + C + cols, inside, 0)
    scale = rstd
    shift = tl.zeros((COLS,), ACC)
    if AFFINE:
        scale = rstd * tl.load(weight + cols, inside, 0).to(ACC)
        shift = tl.load(bias + cols, inside, 0).to(ACC)
    plain = tl.zeros((ROWS, COLS), ACC)
    times = tl.zeros((ROWS, COLS), ACC)
    end = tl.minimum((part + 1) * share, R)
    for start in range(part * share, end, ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows < end)[:, None] & inside[None, :]
        place = rows.to(tl.int64)[:, None] * C + cols[None, :]
        above, normal = _above(grad, x, place, mask, mean, rstd, scale, shift, RELU, ACC)
        plain += above
        times += above * normal
    tl.store(parts_out + part * C + cols, tl.sum(plain, 0), inside)
    tl.store(parts_out + (num_parts + part) * C + cols, tl.sum(times, 0), inside)


@triton.jit(do_not_specialize=["R", "share", "num_parts"])
def _gradient_kernel(
    grad, x, copies, saved, total_in, weight, bias, parts_in, out, of_params, R, share, num_parts,
    C: tl.constexpr, AFFINE: tl.constexpr, RELU: tl.constexpr, ACC: tl.constexpr,
    PARTS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    inside = cols < C
    parts = tl.arange(0, PARTS)
    there = (parts < num_parts)[:, None] & inside[None, :]
    at = parts[:, None] * C + cols[None, :]
    plain = tl.sum(tl.load(parts_in + at, there, 0), 0)
    times = tl.sum(tl.load(parts_in + num_parts * C + at, there, 0), 0)
    mean, rstd = tl.load(saved + cols, inside, 0), tl.load(saved + C + cols, inside, 0)
    scale = rstd
    shift = tl.zeros((COLS,), ACC)
    if AFFINE:
        scale = rstd * tl.load(weight + cols, inside, 0).to(ACC)
        shift = tl.load(bias + cols, inside, 0).to(ACC)
    if program == 0:
        tl.store(of_params + cols, times.to(of_params.dtype.element_ty), inside)
        tl.store(of_params + C + cols, plain.to(of_params.dtype.element_ty), inside)
    total = tl.load(total_in)
    end = tl.minimum((program + 1) * share, R)
    for start in range(program * share, end, ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows < end)[:, None] & inside[None, :]
        place = rows.to(tl.int64)[:, None] * C + cols[None, :]
        above, normal = _above(grad, x, place, mask, mean, rstd, scale, shift, RELU, ACC)
        weighing = (tl.load(copies + rows, rows < end, 0).to(ACC) / total)[:, None]
        # 0 times whatever an uncounted row holds
        common = tl.where(weighing > 0, weighing * (plain[None, :] + normal * times[None, :]), 0)
        tl.store(out + place, ((above - common) * scale[None, :]).to(out.dtype.element_ty), mask)


def _launch(rows: int, channels: int) -> tuple[tuple[int, int], int, dict[str, Any]]:
    """Grid (shares of rows, blocks of columns), rows per share, and the shape of a tile."""
    cols = min(64, max(16, triton.next_power_of_2(channels)))
    tile = 4096 // cols
    blocks = triton.cdiv(rows, tile)
    parts = max(1, min(128, blocks))
    share = triton.cdiv(blocks, parts) * tile
    parts = max(1, triton.cdiv(rows, share)) if share else 1
    shape = {"ROWS": tile, "COLS": cols, "num_warps": 8}
    return (parts, triton.cdiv(channels, cols)), share, shape


@cache
def _constants(eps: float, momentum: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """As a tensor, because a kernel's scalar arguments are float32, which is too coarse for float64 rows."""
    return torch.tensor([eps, momentum], dtype=dtype, device=device)


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, copies: Tensor, eps: float, relu: bool,
        running: tuple[Tensor, Tensor, Tensor, float] | None,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        x, (rows, channels) = x.contiguous(), x.shape
        grid, share, shape = _launch(rows, channels)
        wide = torch.float64 if x.dtype == torch.float64 else torch.float32
        acc, parts = accumulator(x.dtype), grid[0]
        sizes = [parts * channels, parts * channels, 3 * channels, parts, 1]
        room = [torch.empty(n, dtype=wide, device=x.device) for n in sizes]
        means, squares, saved, counts, total = room
        out = torch.empty_like(x)
        _statistics_kernel[grid](x, copies, means, squares, counts, rows, share, C=channels, ACC=acc, **shape)
        buffers = (saved, saved, saved, 0.0) if running is None else running
        _normalise_kernel[grid](
            x, out, means, squares, counts, saved if weight is None else weight, saved if bias is None else bias,
            saved, total, *buffers[:3], rows, share, parts, _constants(eps, buffers[3], wide, x.device),
            C=channels, AFFINE=weight is not None, RELU=relu, RUNNING=running is not None, ACC=acc,
            PARTS=16 if parts <= 16 else 128, **shape,
        )  # fmt: skip
        saved = saved.view(3, channels)
        ctx.save_for_backward(x, weight, bias, copies, saved, total)
        ctx.relu = relu
        ctx.mark_non_differentiable(saved, total)
        return out, saved, total

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias, copies, saved, total = ctx.saved_tensors
        grad, (rows, channels) = grad.contiguous(), x.shape
        grid, share, shape = _launch(rows, channels)
        acc, parts = accumulator(x.dtype), grid[0]
        sums = torch.empty(2 * parts, channels, dtype=saved.dtype, device=x.device)
        out = torch.empty_like(x)
        of_params = torch.empty(2, channels, dtype=saved.dtype if weight is None else weight.dtype, device=x.device)
        same = {"C": channels, "AFFINE": weight is not None, "RELU": ctx.relu, "ACC": acc}
        scaling = (saved, saved) if weight is None else (weight, bias)
        _gradient_sums_kernel[grid](
            grad, x, saved, *scaling, sums, rows, share, parts, **same, **shape
        )
        _gradient_kernel[grid](
            grad, x, copies, saved, total, *scaling, sums, out, of_params, rows, share, parts,
            PARTS=16 if parts <= 16 else 128, **same, **shape,
        )  # fmt: skip
        of_weight, of_bias = (None, None) if weight is None else of_params.unbind(0)
        return out, of_weight, of_bias, *(None,) * 4


def counted_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    copies: Tensor,
    eps: float,
    relu: bool,
    running: tuple[Tensor, Tensor, Tensor, float] | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Normalised rows, and the mean, the variance and the number of all copies that they were normalised with.

    ``running``, the mean, variance, number of batches and momentum, is updated; None: nothing is.
    """
    out, saved, total = _Norm.apply(x, weight, bias, copies, eps, relu, running)
    return out, saved[0], saved[2], total
