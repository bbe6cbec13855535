"""Products of tall tables with weights too wide for a program to hold, and gradients of weights of any width."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from enfa.nn.triton.launch import Launch, cdiv, kernel
from enfa.nn.triton.linears.products import block, gated, stages
from enfa.nn.triton.linears.split import Halves, halves, padded, row_scales, scales, times_halves
from enfa.nn.triton.norm import scaling_of
from enfa.nn.triton.norm_kernels import load_scaling, normalised
from enfa.nn.triton.sums import row_shares

__all__ = ["Normed", "store_columns", "times_columns", "weight_parts", "wide_times"]


class Normed(NamedTuple):
    """A counted norm and the ReLU behind it, for kernels that normalise what they read."""

    saved: Tensor  # [3, K]: mean, 1 / standard deviation, variance
    weight: Tensor | None
    bias: Tensor | None
    copies: Tensor  # [R]


@triton.jit
def _load_normed(
    x, place, mask, counted, saved, weight, bias, k, K: tl.constexpr, AFFINE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """As normalise_kernel writes them: a row that stands for nothing comes out as the bias, whatever it holds."""
    inside = k < K
    mean, rstd = tl.load(saved + k, inside, 0), tl.load(saved + K + k, inside, 0)
    scale, shift = load_scaling(rstd, weight, bias, k, inside, AFFINE, tl.float32, DEPTH)
    value = tl.where(counted, tl.load(x + place, mask, 0).to(tl.float32), mean[None, :])
    return tl.where(mask, normalised(value, mean, scale, shift, True), 0)


@triton.jit
def times_columns(upper, lower, w, k, n, K: tl.constexpr, STRIDE: tl.constexpr):
    """Some rows, in halves, times some columns of w [K, STRIDE]: zeros behind the last."""
    at = w + k[:, None] * STRIDE + n[None, :]
    held = (k < K)[:, None] & (n < STRIDE)[None, :]
    return times_halves(upper, lower, tl.load(at, held, 0), tl.load(at + K * STRIDE, held, 0))


@triton.jit
def store_columns(
    total, down, back, shift, plus, out, long, here, n,
    N: tl.constexpr, SHIFTED: tl.constexpr, PLUS: tl.constexpr, RELU: tl.constexpr,
):  # fmt: skip
    """A product by the powers of two of its rows and columns, what is added to it, and where it is written."""
    mask = here & (n < N)[None, :]
    if out.dtype.element_ty != tl.bfloat16:
        back_n = tl.load(back + n, n < N, 0)[None, :]
        total *= tl.minimum(down, back_n)  # the smaller of the two powers first: the other one would overflow
        total *= tl.maximum(down, back_n)
    if SHIFTED:
        total += tl.load(shift + n, n < N, 0)[None, :]
    if PLUS:
        total += tl.load(plus + long * N + n[None, :], mask, 0).to(tl.float32)
    if RELU:
        total = tl.where(total <= 0, 0, total)  # not the maximum, which hides NaN
    tl.store(out + long * N + n[None, :], total.to(out.dtype.element_ty), mask)


@kernel(do_not_specialize=["R"])
def _wide_kernel(
    x, gate, saved, weight, bias, copies, w, back, shift, plus, out, R,
    K: tl.constexpr, N: tl.constexpr, NORMED: tl.constexpr, AFFINE: tl.constexpr, GATED: tl.constexpr,
    STRIDE: tl.constexpr, SHIFTED: tl.constexpr, PLUS: tl.constexpr, RELU: tl.constexpr, ROWS: tl.constexpr,
    COLS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """out [R, N] = x [R, K] times w [K, N], which comes in halves, or all of them are bfloat16; and what is added to it.

    The last rows first: x was written from the first to the last, and the cache holds what was written last.
    """
    rows = (tl.num_programs(0) - 1 - tl.program_id(0)) * ROWS + tl.arange(0, ROWS)
    n = tl.program_id(1) * COLS + tl.arange(0, COLS)
    here = (rows < R)[:, None]
    long = rows.to(tl.int64)[:, None]
    total = tl.zeros((ROWS, COLS), tl.float32)
    counted = here
    if NORMED:
        counted = (tl.load(copies + rows, rows < R, 0) > 0)[:, None]
    for first in range(0, K, DEPTH):
        k = first + tl.arange(0, DEPTH)
        mask = here & (k < K)[None, :]
        if NORMED:
            a = _load_normed(x, long * K + k[None, :], mask, counted, saved, weight, bias, k, K, AFFINE, DEPTH)
        else:
            a = gated(x, gate, long * K + k[None, :], mask, GATED)
        if w.dtype.element_ty == tl.bfloat16:
            some = tl.load(w + k[:, None] * STRIDE + n[None, :], (k < K)[:, None] & (n < STRIDE)[None, :], 0)
            total = tl.dot(a.to(tl.bfloat16), some, total)
        else:
            up, down = scales(tl.max(tl.abs(a), 1))
            upper, lower = halves(a * up[:, None])
            total += times_columns(upper, lower, w, k, n, K, STRIDE) * down[:, None]
    store_columns(total, 1.0, back, shift, plus, out, long, here, n, N, SHIFTED, PLUS, RELU)


@kernel(do_not_specialize=["R"])
def _weight_kernel(
    grad, gate, x, saved, weight, bias, copies, parts, R,
    N: tl.constexpr, K: tl.constexpr, NORMED: tl.constexpr, AFFINE: tl.constexpr, GATED: tl.constexpr,
    SUMS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """parts [share of the rows, N * K]: the share's grad^T x; where SUMS, the sums of grad [N] behind it."""
    part = tl.program_id(0)
    blocks: tl.constexpr = (K + COLS - 1) // COLS
    n = (tl.program_id(1) // blocks) * ROWS + tl.arange(0, ROWS)
    k = (tl.program_id(1) % blocks) * COLS + tl.arange(0, COLS)
    total = tl.zeros((ROWS, COLS), tl.float32)
    sums = tl.zeros((DEPTH, ROWS), tl.float32)
    tiles = tl.cdiv(R, DEPTH)
    for tile in range(part, tiles, tl.num_programs(0)):
        r = (tiles - 1 - tile) * DEPTH + tl.arange(0, DEPTH)
        here = (r < R)[:, None]
        long = r.to(tl.int64)[:, None]
        a = gated(grad, gate, long * N + n[None, :], here & (n < N)[None, :], GATED)
        mask = here & (k < K)[None, :]
        if NORMED:
            counted = (tl.load(copies + r, r < R, 0) > 0)[:, None]
            b = _load_normed(x, long * K + k[None, :], mask, counted, saved, weight, bias, k, K, AFFINE, COLS)
        else:
            b = tl.load(x + long * K + k[None, :], mask, 0)
        if grad.dtype.element_ty == tl.bfloat16:
            total = tl.dot(tl.trans(a), b.to(tl.bfloat16), total)
        else:
            up_a, up_b, down = row_scales(tl.max(tl.abs(a), 1), tl.max(tl.abs(b), 1))
            upper_a, lower_a = halves(a * up_a[:, None])
            upper_b, lower_b = halves(b * up_b[:, None])
            total += times_halves(tl.trans(upper_a), tl.trans(lower_a), upper_b, lower_b) * down
        if SUMS:
            sums += a
    size: tl.constexpr = N * K + (N if SUMS else 0)
    place = parts + part.to(tl.int64) * size
    tl.store(place + n[:, None] * K + k[None, :], total, (n < N)[:, None] & (k < K)[None, :])
    if SUMS:
        tl.store(place + N * K + n, tl.sum(sums, 0), (n < N) & (tl.program_id(1) % blocks == 0))


def _one_tile(columns: int) -> bool:
    """Whether a tile of 128 columns, some of them empty, is read once where two of 64 would be read twice."""
    return 64 < columns <= 128


def _arguments(x: Tensor, normed: Normed | None) -> tuple[Tensor, ...]:
    """Statistics, weight, bias and copies of the norm, or anything for a kernel that reads none."""
    return (x, x, x, x) if normed is None else (normed.saved, *scaling_of(*normed[:3]), normed.copies)


def wide_times(
    x: Tensor, split: Halves, shape: torch.Size, bias: Tensor | None, transposed: bool, *, gate: Tensor | None = None,
    relu: bool = False, normed: Normed | None = None, plus: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """``x @ weight.T + bias + plus`` for a weight [outs, ins], or with ``transposed`` ``x @ weight``; and a ReLU behind it.

    ``gate``: x counts where this is above 0. ``normed``: what x goes through first.
    """
    outs, ins = shape
    k, n = (outs, ins) if transposed else (ins, outs)
    rows = x.shape[0]
    out = x.new_empty(rows, n)
    there = normed is not None, normed is not None and normed.weight is not None, gate is not None, bias is not None
    launch, down, across = _wide(k, n, *there, plus is not None, relu, x.dtype == torch.bfloat16)
    launch(
        (cdiv(rows, down), across), x, x if gate is None else gate, *_arguments(x, normed), split.parts[int(transposed)],
        split.back[outs:] if transposed else split.back, x if bias is None else bias, x if plus is None else plus, out, rows,
    )  # fmt: skip
    return out


@cache
def _wide(
    k: int, n: int, normed: bool, affine: bool, gated: bool, shifted: bool, plus: bool, relu: bool, mixed: bool
) -> tuple[Launch, int, int]:
    """And the rows of a tile, and how many blocks of columns there are. ``mixed``: in bfloat16."""
    tile = _mixed_tile(64, n) if mixed else _tile(n, not gated and k % 4 == 0)
    launch = _wide_kernel.launch(
        K=k, N=n, NORMED=normed, AFFINE=affine, GATED=gated, STRIDE=padded(n), SHIFTED=shifted, PLUS=plus, RELU=relu, **tile
    )
    return launch, tile["ROWS"], cdiv(n, tile["COLS"])


def _tile(columns: int, aligned: bool) -> dict[str, Any]:
    rows, cols = (64, 128) if _one_tile(columns) or columns % 128 == 0 else (128, block(columns))
    found = {"ROWS": rows, "COLS": cols, "DEPTH": 32, "num_warps": 4, "num_stages": 3}
    # without spilling, three programs to a processor instead of two; rows that are not aligned need more registers
    return {**found, "maxnreg": 168} if columns % 128 == 0 and aligned else found


def _mixed_tile(rows: int, columns: int) -> dict[str, Any]:
    """In bfloat16, as measured on an H200 among eight shapes."""
    warps = 8 if rows == 128 else 4
    return {"ROWS": rows, "COLS": block(columns, 128), "DEPTH": 32, "num_warps": warps, "num_stages": 4}


def weight_parts(
    grad: Tensor, x: Tensor, *, gate: Tensor | None = None, sums: bool = False, normed: Normed | None = None
) -> Tensor:  # fmt: skip
    """[shares, N * K]: ``grad.T @ x``, by shares of the rows; with ``sums`` those of grad [N] behind it."""
    n, k = grad.shape[1], x.shape[1]
    there = normed is not None, normed is not None and normed.weight is not None, gate is not None
    launch, blocks = _weights(n, k, *there, sums, 3 if gate is None else stages(x, 3), x.dtype == torch.bfloat16)
    parts, _ = row_shares(x.shape[0], 32, 128 if n * k <= 2**15 else 64)
    out = x.new_empty(parts, n * k + n * sums, dtype=torch.float32)
    launch((parts, blocks), grad, grad if gate is None else gate, x, *_arguments(x, normed), out, x.shape[0])
    return out


@cache
def _weights(
    n: int, k: int, normed: bool, affine: bool, gated: bool, sums: bool, under_way: int, mixed: bool
) -> tuple[Launch, int]:  # fmt: skip
    """And how many tiles there are."""
    tile = _weight_tile(n, k, under_way, mixed)
    launch = _weight_kernel.launch(N=n, K=k, NORMED=normed, AFFINE=affine, GATED=gated, SUMS=sums, **tile)
    return launch, cdiv(n, tile["ROWS"]) * cdiv(k, tile["COLS"])


def _weight_tile(outs: int, ins: int, under_way: int, mixed: bool) -> dict[str, Any]:
    if mixed:
        return _mixed_tile(block(outs, 128), ins)
    whole = all(_one_tile(size) or size % 128 == 0 for size in (outs, ins))
    rows, cols, warps = (128, 128, 8) if whole else (block(outs), block(ins, 128), 4)
    return {"ROWS": rows, "COLS": cols, "DEPTH": 32, "num_warps": warps, "num_stages": under_way}
