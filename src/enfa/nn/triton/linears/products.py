"""Products of tall tables with weights so small that a program holds them, in float32 accuracy on the tensor cores.

Sums over the rows (weight gradients, statistics) are taken in shares, one program each, which are added in a fixed order.
"""

from __future__ import annotations

from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from enfa.nn.triton import matmul_precision
from enfa.nn.triton.launch import Launch, cdiv, kernel, next_power_of_2
from enfa.nn.triton.sums import accumulator, row_shares

__all__ = ["TILE", "add_parts", "block", "gated", "precision", "stages", "tall_times"]

TILE = 64  # rows
ROOM = 2**17  # bytes of shared memory that the largest kernels take


@cache
def _room(device: int) -> int:
    """Bytes of shared memory that a program can have."""
    return triton.runtime.driver.active.utils.get_device_properties(device)["max_shared_mem"]


def stages(x: Tensor, most: int) -> int:
    """How many tiles a large kernel has under way: one less on small GPUs, which have 99 kB where an A100 has 163."""
    small = x.is_cuda and _room(x.device.index) < ROOM  # Triton's interpreter takes other tensors, too
    return most - 1 if small else most


def precision() -> str:
    """Three tf32 products, which keep float32's accuracy, unless the user has asked for less."""
    return "tf32x3" if matmul_precision() == "highest" else "tf32"


@cache
def block(channels: int, most: int = 64) -> int:
    """Columns of a tile; the tensor cores want 16 at least."""
    return min(most, max(16, next_power_of_2(channels)))


@triton.jit
def gated(x, gate, place, mask, GATED: tl.constexpr):
    """x, where the gate is above 0 or where there is none."""
    value = tl.load(x + place, mask, 0)
    if GATED:
        opened = tl.load(gate + place, mask, 0)
        if gate.dtype.element_ty == tl.bfloat16:  # of which Triton's interpreter compares the bits
            opened = opened.to(tl.float32)
        value = tl.where(opened <= 0, 0, value)
    return value


@kernel(do_not_specialize=["R", "share"])
def _tall_kernel(
    x, gate, w, bias, plus, out, copies, mean_parts, square_parts, count_parts, R, share,
    K: tl.constexpr, N: tl.constexpr, W_K: tl.constexpr, W_N: tl.constexpr, BIAS: tl.constexpr, PLUS: tl.constexpr,
    STATS: tl.constexpr, GATED: tl.constexpr, RELU: tl.constexpr, PRECISION: tl.constexpr, ACC: tl.constexpr,
    ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """out [R, N] = x [R, K] times w, whose element (k, n) is at ``k * W_K + n * W_N``; also its weighted statistics."""
    part = tl.program_id(0)
    cols = tl.arange(0, COLS)
    inside = cols < N
    end = tl.minimum((part + 1) * share, R)
    depth = tl.arange(0, DEPTH)
    count = tl.zeros((1,), ACC)
    mean = tl.zeros((COLS,), ACC)
    square = tl.zeros((COLS,), ACC)
    shift = tl.zeros((COLS,), ACC)
    if BIAS:
        shift = tl.load(bias + cols, inside, 0).to(ACC)
    whole = tl.load(w + depth[:, None] * W_K + cols[None, :] * W_N, (depth < K)[:, None] & inside[None, :], 0)
    for start in range(part * share, end, ROWS):
        rows = start + tl.arange(0, ROWS)
        here = rows < end
        place = rows.to(tl.int64)[:, None]
        a = gated(x, gate, place * K + depth[None, :], here[:, None] & (depth < K)[None, :], GATED)
        total = tl.dot(a, whole, input_precision=PRECISION, out_dtype=ACC)
        total += shift[None, :]
        if PLUS:
            total += tl.load(plus + place * N + cols[None, :], here[:, None] & inside[None, :], 0).to(ACC)
        if RELU:
            total = tl.where(total <= 0, 0, total)  # not the maximum, which hides NaN
        tl.store(out + place * N + cols[None, :], total.to(out.dtype.element_ty), here[:, None] & inside[None, :])
        if STATS:  # Chan's formula, tile by tile
            c = tl.load(copies + rows, here, 0).to(ACC)
            tile_count = tl.sum(c, 0)
            # a row that stands for nothing may hold anything
            middle = tl.sum(tl.where((c > 0)[:, None], total * c[:, None], 0), 0) / tl.maximum(tile_count, 1)
            away = tl.where((c > 0)[:, None], total - middle[None, :], 0)
            spread = tl.sum(away * away * c[:, None], 0)
            # equal rows have exactly their own mean, as by statistics_kernel
            middle += tl.sum(away * c[:, None], 0) / tl.maximum(tile_count, 1)
            part_of = tl.where(count > 0, tile_count / tl.maximum(count + tile_count, 1), 1)
            square += spread + (middle - mean) * (middle - mean) * count * part_of
            mean += (middle - mean) * part_of
            count += tile_count
    if STATS:
        tl.store(mean_parts + part * N + cols, mean, inside)
        tl.store(square_parts + part * N + cols, square, inside)
        tl.store(count_parts + part + tl.arange(0, 1), count)


@kernel(do_not_specialize=["num_parts"])
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
    out = parts.new_empty(size + zeros, dtype=dtype)
    launch, grid = _adding(size, zeros)
    launch(grid, parts, out, count)
    return out


@cache
def _adding(size: int, zeros: int) -> tuple[Launch, tuple[int]]:
    cols = 32 if size <= 16384 else 128
    return _add_kernel.launch(SIZE=size, ZEROS=zeros, ROWS=32, COLS=cols), (cdiv(size + zeros, cols),)


def tall_times(
    x: Tensor, weight: Tensor, bias: Tensor | None, transposed: bool, *, gate: Tensor | None = None, relu: bool = False,
    plus: Tensor | None = None, stats: tuple[Tensor, ...] | None = None, shares: tuple[int, int] | None = None,
) -> Tensor:  # fmt: skip
    """``x @ weight.T + bias + plus`` (as nn.Linear), or with ``transposed`` ``x @ weight``; and a ReLU behind it.

    ``gate``: x counts where this is above 0. ``stats``: the copies of each row, and room for the weighted means, squares
    and counts of each share of the rows.
    """
    (outs, ins), rows = weight.shape, x.shape[0]
    k, n = (outs, ins) if transposed else (ins, outs)
    out = x.new_empty(rows, n)
    parts, share = shares or row_shares(rows, TILE, 2**30)
    room: tuple[Tensor, ...] = stats or (out, out, out, out)
    there = bias is not None, plus is not None, stats is not None, gate is not None
    _tall(k, n, transposed, *there, relu, precision(), x.dtype)(
        (parts,), x, x if gate is None else gate, weight, weight if bias is None else bias, x if plus is None else plus, out,
        *room, rows, share,
    )  # fmt: skip
    return out


@cache
def _tall(
    k: int, n: int, transposed: bool, bias: bool, plus: bool, stats: bool, gated: bool, relu: bool, precise: str,
    dtype: torch.dtype,
) -> Launch:  # fmt: skip
    strides = (n, 1) if transposed else (1, k)
    return _tall_kernel.launch(
        K=k, N=n, W_K=strides[0], W_N=strides[1], BIAS=bias, PLUS=plus, STATS=stats, GATED=gated, RELU=relu, PRECISION=precise,
        ACC=accumulator(dtype), ROWS=TILE, COLS=block(n), DEPTH=block(k), num_warps=4, num_stages=2,
    )  # fmt: skip
