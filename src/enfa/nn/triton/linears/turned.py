"""The gradient in front of a norm, times the weight of the linear before it, in one pass over the rows.

For weights of which a program holds all columns, but that are too wide to be held as a whole: then the row's gradient is
made once, stored for the weight's gradient, and multiplied while it is at hand.
"""

from __future__ import annotations

from functools import cache

import torch
import triton.language as tl
from torch import Tensor

from enfa.nn.triton.launch import Launch, cdiv, kernel, next_power_of_2
from enfa.nn.triton.linears.split import Halves, halves, padded, scales
from enfa.nn.triton.linears.wide_kernels import times_columns
from enfa.nn.triton.norm import gradient_totals, scaling_of
from enfa.nn.triton.norm_kernels import above_relu, load_scaling, row_gradients

__all__ = ["turn_times", "turns"]

WIDTH = 128
TILE = {"ROWS": 64, "DEPTH": 32, "num_warps": 4, "num_stages": 3}


@kernel(do_not_specialize=["R"])
def _turned_kernel(
    grad, z, copies, saved, total_in, weight, bias, of_params, w, back, of_z, of_x, R,
    N: tl.constexpr, K: tl.constexpr, STRIDE: tl.constexpr, AFFINE: tl.constexpr, RELU: tl.constexpr,
    ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """of_z [R, N], and of_x [R, K] = of_z times w [N, K], which comes in halves."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = rows < R
    long = rows.to(tl.int64)[:, None]
    k = tl.arange(0, COLS)
    total = tl.load(total_in)
    result = tl.zeros((ROWS, COLS), tl.float32)
    for first in range(0, N, DEPTH):
        n = first + tl.arange(0, DEPTH)
        inside = n < N
        mask = here[:, None] & inside[None, :]
        mean, rstd = tl.load(saved + n, inside, 0), tl.load(saved + N + n, inside, 0)
        scale, shift = load_scaling(rstd, weight, bias, n, inside, AFFINE, tl.float32, DEPTH)
        times, plain = tl.load(of_params + n, inside, 0), tl.load(of_params + N + n, inside, 0)
        place = long * N + n[None, :]
        above, normal = above_relu(grad, z, place, mask, mean, rstd, scale, shift, RELU, tl.float32)
        a = tl.where(mask, row_gradients(above, normal, copies, rows, here, total, plain, times, scale, tl.float32), 0)
        tl.store(of_z + place, a, mask)
        up, down = scales(tl.max(tl.abs(a), 1))
        upper, lower = halves(a * up[:, None])
        result += times_columns(upper, lower, w, n, k, N, STRIDE) * down[:, None]
    result *= tl.load(back + k, k < K, 0)[None, :]
    tl.store(of_x + long * K + k[None, :], result, here[:, None] & (k < K)[None, :])


def turns(outs: int, ins: int) -> bool:
    """Whether :func:`turn_times` can be used for a weight [outs, ins]."""
    return ins <= WIDTH and outs <= 2 * WIDTH


def turn_times(
    grad: Tensor, z: Tensor, copies: Tensor, saved: Tensor, total: Tensor, weight: Tensor | None, bias: Tensor | None,
    sums: Tensor, relu: bool, split: Halves, ins: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of z [R, N], of weight and bias [2, N], and of the linear's inputs [R, ins]. All float32."""
    rows, outs = z.shape
    of_z, of_x = torch.empty_like(z), z.new_empty(rows, ins)
    of_params = gradient_totals(sums)
    _turning(outs, ins, weight is not None, relu)(
        (cdiv(rows, TILE["ROWS"]),), grad, z, copies, saved, total, *scaling_of(saved, weight, bias), of_params,
        split.parts[1], split.back[outs:], of_z, of_x, rows,
    )  # fmt: skip
    return of_z, of_params, of_x


@cache
def _turning(n: int, k: int, affine: bool, relu: bool) -> Launch:
    cols = max(16, next_power_of_2(k))
    return _turned_kernel.launch(N=n, K=k, STRIDE=padded(k), AFFINE=affine, RELU=relu, COLS=cols, **TILE)
