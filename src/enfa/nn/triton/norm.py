"""Counted BatchNorm and the ReLU behind it: two kernels forwards, two backwards."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import torch
from torch import Tensor

from enfa.nn.ops.function import applied, backward_once
from enfa.nn.triton.launch import cdiv, next_power_of_2
from enfa.nn.triton.norm_kernels import (
    gradient_kernel,
    gradient_sums_kernel,
    normalise_kernel,
    statistics_kernel,
    totals_kernel,
)
from enfa.nn.triton.sums import accumulator, row_shares

__all__ = [
    "Running", "counted_norm", "gradient_sums", "gradient_totals", "normalise", "scaling_of", "statistics", "statistics_room",
    "turn_gradient",
]  # fmt: skip

Running = tuple[Tensor, Tensor, Tensor, float]


@lru_cache(1024)
def _launch(rows: int, channels: int) -> tuple[tuple[int, int], dict[str, Any]]:
    """Grid (shares of rows, blocks of columns), and the shape of a tile."""
    cols = min(64, max(16, next_power_of_2(channels)))
    across = cdiv(channels, cols)
    # about 300 programs: many small ones for wide rows, few large ones for narrow rows
    tile, warps, most = (128, 8, 128) if across <= 2 else (64, 4, 64)
    parts, _ = row_shares(rows, tile, most)
    return (parts, across), {"ROWS": tile, "COLS": cols, "num_warps": warps}


@cache
def _constants(eps: float, momentum: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """As a tensor, because a kernel's scalar arguments are float32, which is too coarse for float64 rows."""
    return torch.tensor([eps, momentum], dtype=dtype, device=device)


def scaling_of(saved: Tensor, weight: Tensor | None, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """Weight and bias, or anything for a kernel that reads neither."""
    return (saved, saved) if weight is None or bias is None else (weight, bias)


def statistics_room(x: Tensor, shares: int, channels: int) -> tuple[Tensor, Tensor, Tensor]:
    """For weighted means and sums of squares [shares, C], and counts [shares]."""
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    means, squares = (torch.empty(shares, channels, dtype=wide, device=x.device) for _ in range(2))
    return means, squares, torch.empty(shares, dtype=wide, device=x.device)


def statistics(x: Tensor, copies: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Weighted means and sums of squares [shares, C], and counts [shares]."""
    rows, channels = x.shape
    grid, shape = _launch(rows, channels)
    means, squares, counts = statistics_room(x, grid[0], channels)
    statistics_kernel[grid](x, copies, means, squares, counts, rows, C=channels, ACC=accumulator(x.dtype), **shape)
    return means, squares, counts


def normalise(
    x: Tensor, copies: Tensor, means: Tensor, squares: Tensor, counts: Tensor, weight: Tensor | None,
    bias: Tensor | None, eps: float, relu: bool, running: Running | None, later: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Normalised rows; mean, 1 / standard deviation and variance [3, C]; the number of all copies.

    ``means``, ``squares``, ``counts``: of so few shares that every program can add them up for itself. ``later``: the
    rows are left as they are, to be normalised where they are read.
    """
    rows, channels = (0 if later else x.shape[0]), x.shape[1]
    grid, shape = _launch(rows, channels)
    wide = means.dtype
    out, saved = x if later else torch.empty_like(x), torch.empty(3, channels, dtype=wide, device=x.device)
    total = torch.empty(1, dtype=wide, device=x.device)
    buffers = (saved, saved, saved, 0.0) if running is None else running
    normalise_kernel[grid](
        x, out, copies, means, squares, counts, *scaling_of(saved, weight, bias), saved, total, *buffers[:3],
        rows, counts.shape[0], _constants(eps, buffers[3], wide, x.device),
        C=channels, AFFINE=weight is not None, RELU=relu, RUNNING=running is not None, ACC=accumulator(x.dtype),
        PARTS=max(16, next_power_of_2(counts.shape[0])), **shape,
    )  # fmt: skip
    return out, saved, total


def gradient_sums(grad: Tensor, x: Tensor, saved: Tensor, weight: Tensor | None, bias: Tensor | None, relu: bool) -> Tensor:
    """[2 * shares, C]: of what the ReLU let through its sums, then those of its products with the normalised rows."""
    grid, shape = _launch(*x.shape)
    sums = torch.empty(2 * grid[0], x.shape[1], dtype=saved.dtype, device=x.device)
    gradient_sums_kernel[grid](
        grad, x, saved, *scaling_of(saved, weight, bias), sums, x.shape[0], grid[0],
        C=x.shape[1], AFFINE=weight is not None, RELU=relu, ACC=accumulator(x.dtype), **shape,
    )  # fmt: skip
    return sums


def gradient_totals(sums: Tensor) -> Tensor:
    """[2, C]: of :func:`gradient_sums`, the gradients of weight and bias."""
    parts, channels = sums.shape[0] // 2, sums.shape[1]
    out = torch.empty(2, channels, dtype=torch.float32, device=sums.device)
    totals_kernel[(cdiv(channels, 16),)](sums, out, parts, C=channels, PARTS=max(16, next_power_of_2(parts)), COLS=16)
    return out


def turn_gradient(
    grad: Tensor, x: Tensor, copies: Tensor, saved: Tensor, total: Tensor, weight: Tensor | None, bias: Tensor | None,
    sums: Tensor, relu: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The gradients of the rows, and of weight and bias [2, C]."""
    rows, channels = x.shape
    grid, shape = _launch(rows, channels)
    out = torch.empty_like(x)
    of_params = torch.empty(2, channels, dtype=saved.dtype if weight is None else weight.dtype, device=x.device)
    gradient_kernel[grid](
        grad, x, copies, saved, total, *scaling_of(saved, weight, bias), sums, out, of_params, rows, sums.shape[0] // 2,
        C=channels, AFFINE=weight is not None, RELU=relu, ACC=accumulator(x.dtype),
        PARTS=max(16, next_power_of_2(sums.shape[0] // 2)), **shape,
    )  # fmt: skip
    return out, of_params


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, copies: Tensor, eps: float, relu: bool,
        running: Running | None, later: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        x = x.contiguous()
        out, saved, total = normalise(x, copies, *statistics(x, copies), weight, bias, eps, relu, running, later)
        ctx.save_for_backward(x, weight, bias, copies, saved, total)
        ctx.relu = relu
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(saved, total)
        return out, saved, total

    @staticmethod
    @backward_once
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias, copies, saved, total = ctx.saved_tensors
        grad = grad.contiguous()
        sums = gradient_sums(grad, x, saved, weight, bias, ctx.relu)
        out, of_params = turn_gradient(grad, x, copies, saved, total, weight, bias, sums, ctx.relu)
        of_weight, of_bias = (None, None) if weight is None else of_params.unbind(0)
        return out, of_weight, of_bias, *(None,) * 5


def counted_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, copies: Tensor, eps: float, relu: bool, running: Running | None,
    later: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Normalised rows; mean, 1 / standard deviation and variance [3, C]; the number of all copies.

    ``running``, the mean, variance, number of batches and momentum, is updated; None: nothing is. With ``later`` the rows
    come as they are, for a linear that is told of the norm ``before`` its inputs and normalises them as it reads them; the
    gradient that comes back is that of normalised rows.
    """
    return applied(_Norm, x, weight, bias, copies, eps, relu, running, later)
