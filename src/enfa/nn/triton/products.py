"""Matrix products of tall tables with small weights, in float32 accuracy on the tensor cores.

Each float32 factor is split into numbers that the tensor cores take, and the products of the parts are added up, which
keeps float32's accuracy. Sums over the rows (weight gradients, statistics) are taken in shares, one program
each, which are added in a fixed order.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from enfa.nn.triton.split import NARROW, upper_part
from enfa.nn.triton.sums import accumulator, row_shares

__all__ = ["add_parts", "block", "gated", "precision", "tall_tile", "tall_times", "weight_parts"]

@cache
def _takes_bf16x6() -> bool:
    from triton.backends.nvidia.compiler import CUDAOptions

    return "bf16x6" in CUDAOptions.allowed_dot_input_precisions


def precision(transposed: bool = False) -> str:
    """float32's own accuracy, unless the user has asked for less.

    Three tf32 products, or six of bfloat16 parts, which are as accurate and faster where a factor stands transposed.
    """
    if torch.get_float32_matmul_precision() != "highest":
        return "tf32"
    return "bf16x6" if transposed and _takes_bf16x6() else "tf32x3"


def block(channels: int, most: int = 64) -> int:
    """Columns of a tile; the tensor cores want 16 at least."""
    return min(most, max(16, triton.next_power_of_2(channels)))


@triton.jit
def gated(x, gate, place, mask, GATED: tl.constexpr):
    """x, where the gate is above 0 or where there is none."""
    value = tl.load(x + place, mask, 0)
    if GATED:
        value = tl.where(tl.load(gate + place, mask, 0) <= 0, 0, value)
    return value


@triton.jit(do_not_specialize=["R", "share"])
def _tall_kernel(
    x, gate, w, bias, out, copies, mean_parts, square_parts, count_parts, R, share,
    K: tl.constexpr, N: tl.constexpr, W_K: tl.constexpr, W_N: tl.constexpr, BIAS: tl.constexpr, STATS: tl.constexpr,
    GATED: tl.constexpr, RELU: tl.constexpr, SPLIT: tl.constexpr, PRECISION: tl.constexpr, ACC: tl.constexpr,
    ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """out [R, N] = x [R, K] times w, whose element (k, n) is at ``k * W_K + n * W_N``; also its weighted statistics."""
    part = tl.program_id(0)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    inside = cols < N
    end = tl.minimum((part + 1) * share, R)
    depth = tl.arange(0, DEPTH)
    count = tl.zeros((1,), ACC)
    mean = tl.zeros((COLS,), ACC)
    square = tl.zeros((COLS,), ACC)
    shift = tl.zeros((COLS,), ACC)
    if BIAS:
        shift = tl.load(bias + cols, inside, 0).to(ACC)
    if K <= DEPTH:
        whole = tl.load(w + depth[:, None] * W_K + cols[None, :] * W_N, (depth < K)[:, None] & inside[None, :], 0)
    for start in range(part * share, end, ROWS):
        rows = start + tl.arange(0, ROWS)
        here = rows < end
        place = rows.to(tl.int64)[:, None]
        total = tl.zeros((ROWS, COLS), ACC)
        if K <= DEPTH:
            a = gated(x, gate, place * K + depth[None, :], here[:, None] & (depth < K)[None, :], GATED)
            total = tl.dot(a, whole, total, input_precision=PRECISION, out_dtype=ACC)
        else:
            for first in range(0, K, DEPTH):
                k = first + depth
                a = gated(x, gate, place * K + k[None, :], here[:, None] & (k < K)[None, :], GATED)
                at = k[:, None] * W_K + cols[None, :] * W_N
                held = (k < K)[:, None] & inside[None, :]
                b = tl.load(w + at, held, 0)
                if SPLIT:
                    upper = upper_part(a)
                    lower = tl.load(w + K * N + at, held, 0)
                    # by itself first: the tensor cores cut off what they add, and would do so at the size of the total
                    some = tl.dot(a - upper, b, input_precision=PRECISION, out_dtype=ACC)
                    some = tl.dot(upper, lower, some, input_precision=PRECISION, out_dtype=ACC)
                    total += tl.dot(upper, b, some, input_precision=PRECISION, out_dtype=ACC)
                else:
                    total = tl.dot(a, b, total, input_precision=PRECISION, out_dtype=ACC)
        total += shift[None, :]
        if RELU:
            total = tl.where(total <= 0, 0, total)  # not the maximum, which hides NaN
        tl.store(out + place * N + cols[None, :], total.to(out.dtype.element_ty), here[:, None] & inside[None, :])
        if STATS:  # Chan's formula, tile by tile
            c = tl.load(copies + rows, here, 0).to(ACC)
            tile_count = tl.sum(c, 0)
            # a row that nobody counts may hold anything
            middle = tl.sum(tl.where((c > 0)[:, None], total * c[:, None], 0), 0) / tl.maximum(tile_count, 1)
            away = tl.where((c > 0)[:, None], total - middle[None, :], 0)
            spread = tl.sum(away * away * c[:, None], 0)
            part_of = tile_count / tl.maximum(count + tile_count, 1)
            square += spread + (middle - mean) * (middle - mean) * count * part_of
            mean += (middle - mean) * part_of
            count += tile_count
    if STATS:
        tl.store(mean_parts + part * N + cols, mean, inside)
        tl.store(square_parts + part * N + cols, square, inside)
        if tl.program_id(1) == 0:
            tl.store(count_parts + part + tl.arange(0, 1), count)


@triton.jit(do_not_specialize=["R", "share"])
def _weight_kernel(
    grad, gate, x, parts, R, share,
    N: tl.constexpr, K: tl.constexpr, GATED: tl.constexpr, BIAS: tl.constexpr, PRECISION: tl.constexpr,
    ACC: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """parts [share of the rows, N * K]: the share's grad^T x; where BIAS, the sums of grad [N] behind it."""
    part = tl.program_id(0)
    blocks: tl.constexpr = (K + COLS - 1) // COLS
    n = (tl.program_id(1) // blocks) * ROWS + tl.arange(0, ROWS)
    k = (tl.program_id(1) % blocks) * COLS + tl.arange(0, COLS)
    total = tl.zeros((ROWS, COLS), ACC)
    of_bias = tl.zeros((ROWS,), ACC)
    end = tl.minimum((part + 1) * share, R)
    for start in range(part * share, end, DEPTH):
        r = start + tl.arange(0, DEPTH)
        here = r < end
        place = r.to(tl.int64)[:, None]
        a = gated(grad, gate, place * N + n[None, :], here[:, None] & (n < N)[None, :], GATED)
        b = tl.load(x + place * K + k[None, :], here[:, None] & (k < K)[None, :], 0)
        total = tl.dot(tl.trans(a), b, total, input_precision=PRECISION, out_dtype=ACC)
        if BIAS:
            of_bias += tl.sum(a.to(ACC), 0)
    size: tl.constexpr = N * K + (N if BIAS else 0)
    here = parts + part.to(tl.int64) * size
    tl.store(here + n[:, None] * K + k[None, :], total, (n < N)[:, None] & (k < K)[None, :])
    if BIAS:
        tl.store(here + N * K + n, of_bias, (n < N) & (tl.program_id(1) % blocks == 0))


@triton.jit(do_not_specialize=["num_parts"])
def _add_kernel(parts, out, num_parts, SIZE: tl.constexpr, ZEROS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr):
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
    total = tl.zeros((ROWS, COLS), parts.dtype.element_ty)
    for start in range(0, num_parts, ROWS):
        rows = start + tl.arange(0, ROWS)
        there = (rows < num_parts)[:, None] & (cols < SIZE)[None, :]
        total += tl.load(parts + rows.to(tl.int64)[:, None] * SIZE + cols[None, :], there, 0)
    tl.store(out + cols, tl.sum(total, 0).to(out.dtype.element_ty), cols < SIZE + ZEROS)


def add_parts(parts: Tensor, zeros: int, dtype: torch.dtype) -> Tensor:
    """[size + zeros]: the sum over the first of two dimensions, and zeros behind it."""
    count, size = parts.shape
    out = torch.empty(size + zeros, dtype=dtype, device=parts.device)
    cols = 32 if size <= 16384 else 128
    _add_kernel[(triton.cdiv(size + zeros, cols),)](parts, out, count, SIZE=size, ZEROS=zeros, ROWS=32, COLS=cols)
    return out


Tile = tuple[int, int, int, int, int]  # rows, columns, depth, warps, stages


def tall_tile(k: int, n: int) -> Tile:
    if max(k, n) <= NARROW:
        return 64, block(n), block(k), 4, 2
    return (64, 128, 32, 4, 3) if n % 128 == 0 else (128, block(n), 32, 4, 3)


def tall_times(
    x: Tensor, weight: Tensor, bias: Tensor | None, transposed: bool, *, split: Tensor | None = None,
    gate: Tensor | None = None, relu: bool = False,
    stats: tuple[Tensor, ...] | None = None, shares: tuple[int, int] | None = None, tile: Tile | None = None,
    how: str | None = None,
) -> Tensor:  # fmt: skip
    """``x @ weight.T + bias`` (as nn.Linear), or with ``transposed`` ``x @ weight``; and a ReLU behind it.

    ``split``: the weight in parts, of ``enfa.nn.triton.split``. ``gate``: x counts where this is above 0. ``stats``: the
    copies of each row, and room for the weighted means, squares and counts of each share of the rows.
    """
    outs, ins = weight.shape
    k, n = (outs, ins) if transposed else (ins, outs)
    out = x.new_empty(len(x), n)
    rows, cols, depth, warps, stages = tile or tall_tile(k, n)
    if k <= depth:  # one product, in which a program splits the weight itself
        split = None
    strides = (ins, 1) if transposed and split is None else (1, k)
    parts, share = shares or row_shares(len(x), rows, 2**30)
    room: tuple[Tensor, ...] = stats or (out, out, out, out)
    _tall_kernel[(parts, triton.cdiv(n, cols))](
        x, x if gate is None else gate, weight if split is None else split[int(transposed)],
        weight if bias is None else bias, out, *room, len(x), share,
        K=k, N=n, W_K=strides[0], W_N=strides[1], BIAS=bias is not None, STATS=stats is not None,
        GATED=gate is not None, RELU=relu, SPLIT=split is not None,
        PRECISION="tf32" if split is not None else how or precision(transposed and n > NARROW),
        ACC=accumulator(x.dtype), ROWS=rows, COLS=cols, DEPTH=depth, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return out


def weight_parts(
    grad: Tensor, x: Tensor, *, gate: Tensor | None = None, bias: bool = False, tile: Tile | None = None,
    most: int | None = None, how: str | None = None,
) -> Tensor:  # fmt: skip
    """[shares, N * K]: ``grad.T @ x``, by shares of the rows; with ``bias`` the sums of grad [N] behind it."""
    n, k = grad.shape[1], x.shape[1]
    rows, cols, depth, warps, stages = tile or (block(n), 128 if k % 128 == 0 else 64, 32, 4, 3)
    parts, share = row_shares(len(x), depth, most or (128 if n * k <= 2**15 else 64))
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    out = torch.empty(parts, n * k + n * bias, dtype=wide, device=x.device)
    options: dict[str, Any] = {"num_warps": warps, "num_stages": stages}
    _weight_kernel[(parts, triton.cdiv(n, rows) * triton.cdiv(k, cols))](
        grad, grad if gate is None else gate, x, out, len(x), share, N=n, K=k, GATED=gate is not None, BIAS=bias,
        PRECISION=how or precision(True), ACC=accumulator(x.dtype), ROWS=rows, COLS=cols, DEPTH=depth, **options,
    )  # fmt: skip
    return out
