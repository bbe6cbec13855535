"""Counted BatchNorm and the ReLU behind it: two kernels forwards, two backwards."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import torch
from torch import Tensor

from enfa.nn.ops.function import applied, backward_once
from enfa.nn.triton.launch import Kernel, Launch, cdiv, next_power_of_2
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


@cache
def _tile(channels: int) -> tuple[dict[str, int], int]:
    """The shape of a tile, and into how many shares rows are cut at most."""
    cols = min(64, max(16, next_power_of_2(channels)))
    # about 300 programs: many small ones for wide rows, few large ones for narrow rows
    tile, warps, most = (128, 8, 128) if cdiv(channels, cols) <= 2 else (64, 4, 64)
    return {"ROWS": tile, "COLS": cols, "num_warps": warps}, most


@lru_cache(1024)
def _grid(rows: int, channels: int) -> tuple[int, int]:
    """Shares of rows, and blocks of columns."""
    tile, most = _tile(channels)
    return row_shares(rows, tile["ROWS"], most)[0], cdiv(channels, tile["COLS"])


@cache
def _launch(of: Kernel, channels: int, dtype: torch.dtype, parts: int = 0, *switches: bool) -> Launch:
    """``parts``: of a kernel that adds up what so many programs have found. Switches: AFFINE, RELU and RUNNING."""
    more = {"PARTS": max(16, next_power_of_2(parts))} if parts else {}
    more |= zip(("AFFINE", "RELU", "RUNNING"), switches)
    return of.launch(C=channels, ACC=accumulator(dtype), **more, **_tile(channels)[0])


@cache
def _constants(eps: float, momentum: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """As a tensor, because a kernel's scalar arguments are float32, which is too coarse for float64 rows."""
    return torch.tensor([eps, momentum], dtype=dtype, device=device)


def scaling_of(saved: Tensor, weight: Tensor | None, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """Weight and bias, or anything for a kernel that reads neither."""
    return (saved, saved) if weight is None or bias is None else (weight, bias)


def statistics_room(x: Tensor, shares: int, channels: int) -> tuple[Tensor, Tensor, Tensor]:
    """For weighted means and sums of squares [shares, C], and counts [shares]."""
    wide = x if x.dtype in (torch.float32, torch.float64) else x.new_empty(0, dtype=torch.float32)
    return wide.new_empty(shares, channels), wide.new_empty(shares, channels), wide.new_empty(shares)


def statistics(x: Tensor, copies: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Weighted means and sums of squares [shares, C], and counts [shares]."""
    rows, channels = x.shape
    grid = _grid(rows, channels)
    found = statistics_room(x, grid[0], channels)
    _launch(statistics_kernel, channels, x.dtype)(grid, x, copies, *found, rows)
    return found


def normalise(
    x: Tensor, copies: Tensor, means: Tensor, squares: Tensor, counts: Tensor, weight: Tensor | None,
    bias: Tensor | None, eps: float, relu: bool, running: Running | None, later: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Normalised rows; mean, 1 / standard deviation and variance [3, C]; the number of all copies.

    ``means``, ``squares``, ``counts``: of so few shares that every program can add them up for itself. ``later``: the
    rows are left as they are, to be normalised where they are read.
    """
    (rows, channels), parts = x.shape, counts.shape[0]
    out, rows = (x, 0) if later else (torch.empty_like(x), rows)
    saved, total = means.new_empty(3, channels), means.new_empty(1)
    *buffers, momentum = (saved, saved, saved, 0.0) if running is None else running
    launch = _launch(normalise_kernel, channels, x.dtype, parts, weight is not None, relu, running is not None)
    launch(
        _grid(rows, channels), x, out, copies, means, squares, counts, *scaling_of(saved, weight, bias), saved, total,
        *buffers, _constants(eps, momentum, means.dtype, x.device), rows, parts,
    )  # fmt: skip
    return out, saved, total


def gradient_sums(
    grad: Tensor, x: Tensor, copies: Tensor, saved: Tensor, weight: Tensor | None, bias: Tensor | None, relu: bool
) -> Tensor:  # fmt: skip
    """[2 * shares, C]: of what the ReLU let through its sums, then those of its products with the normalised rows."""
    rows, channels = x.shape
    grid = _grid(rows, channels)
    sums = saved.new_empty(2 * grid[0], channels)
    launch = _launch(gradient_sums_kernel, channels, x.dtype, 0, weight is not None, relu)
    launch(grid, grad, x, copies, saved, *scaling_of(saved, weight, bias), sums, rows, grid[0])
    return sums


def gradient_totals(sums: Tensor) -> Tensor:
    """[2, C]: of :func:`gradient_sums`, the gradients of weight and bias."""
    parts, channels = sums.shape[0] // 2, sums.shape[1]
    out = sums.new_empty(2, channels, dtype=torch.float32)
    _totals(channels, parts)((cdiv(channels, 16),), sums, out, parts)
    return out


@cache
def _totals(channels: int, parts: int) -> Launch:
    return totals_kernel.launch(C=channels, PARTS=max(16, next_power_of_2(parts)), COLS=16)


def turn_gradient(
    grad: Tensor, x: Tensor, copies: Tensor, saved: Tensor, total: Tensor, weight: Tensor | None, bias: Tensor | None,
    sums: Tensor, relu: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The gradients of the rows, and of weight and bias [2, C]."""
    (rows, channels), parts = x.shape, sums.shape[0] // 2
    out, of_params = torch.empty_like(x), (saved if weight is None else weight).new_empty(2, channels)
    _launch(gradient_kernel, channels, x.dtype, parts, weight is not None, relu)(
        _grid(rows, channels),
        grad, x, copies, saved, total, *scaling_of(saved, weight, bias), sums, out, of_params, rows, parts,
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
    def backward(ctx: Any, grad: Tensor | None, *_: Tensor) -> tuple[Tensor | None, ...]:
        if grad is None:
            return (None,) * 8
        x, weight, bias, copies, saved, total = ctx.saved_tensors
        grad = grad.contiguous()
        sums = gradient_sums(grad, x, copies, saved, weight, bias, ctx.relu)
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
