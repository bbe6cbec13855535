"""float32 numbers as two float16 halves each, so that the tensor cores can multiply them at float32's accuracy.

Numbers that share a power of two, which brings the largest of them to just below 2**15, keep 22 bits in their two halves,
and 2**-39 of the largest at least. Three of the four products of halves are added up; the fourth is below float32's
rounding. Three float16 products take half the time of three TF32 products, which would be as accurate.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from enfa.nn.triton.launch import Launch, cdiv, kernel, next_power_of_2

__all__ = ["NARROW", "Halves", "halves", "padded", "row_scales", "scales", "split_weight", "times_halves"]

NARROW = 64  # a weight of at most so many rows and columns is held by a program as a whole


class Halves(NamedTuple):
    """A weight [outs, ins], split once for all programs that multiply by it."""

    parts: Tensor  # [2, size]: halves of the transpose [ins, outs] for the way forwards, of the weight for the way back
    back: Tensor  # [outs + ins]: what takes columns of either to their own size again


@cache
def padded(columns: int) -> int:
    """Of a table of halves: its rows begin at multiples of 16 bytes."""
    return cdiv(columns, 8) * 8


@triton.jit
def scales(most):
    """Powers of two: which brings numbers of at most this size to just below 2**15, and which takes them back."""
    exponent = tl.maximum((most.to(tl.int32, bitcast=True) >> 23) & 255, 20)
    up, down = (268 - exponent) << 23, (exponent - 14) << 23
    return up.to(tl.float32, bitcast=True), down.to(tl.float32, bitcast=True)


@triton.jit
def _exponents(most):
    """Of float32 numbers, as they are stored; small ones count as 2**-113, so that none has to be raised too far."""
    return tl.maximum((most.to(tl.int32, bitcast=True) >> 23) & 255, 14)


@triton.jit
def row_scales(most_a, most_b):
    """Powers of two for the rows of two tables, over which their products are summed, and what takes the sum back.

    What a row's largest product lacks of the largest of all is taken off a by half, and off b by half. So the rows of
    either table may differ in size as they like; only what no product of size needs is lost.
    """
    a, b = _exponents(most_a), _exponents(most_b)
    top = tl.maximum(tl.max(a + b, 0), 156)
    lack = top - a - b
    up_a = tl.maximum(268 - a - (lack >> 1), 1) << 23
    up_b = tl.maximum(268 - b - (lack - (lack >> 1)), 1) << 23
    down = tl.minimum(top - 155, 254) << 23
    return (
        up_a.to(tl.float32, bitcast=True), up_b.to(tl.float32, bitcast=True), down.to(tl.float32, bitcast=True)
    )  # fmt: skip


@triton.jit
def halves(value):
    """Upper and lower half of numbers below 2**15."""
    upper = value.to(tl.float16)
    return upper, (value - upper.to(tl.float32)).to(tl.float16)


@triton.jit
def times_halves(upper_a, lower_a, upper_b, lower_b):
    """Small parts first, and nothing before them: the tensor cores cut off what they add, at the size of the total."""
    total = tl.dot(lower_a, upper_b)
    total = tl.dot(upper_a, lower_b, total)
    return tl.dot(upper_a, upper_b, total)


@triton.jit
def _split_columns(
    w, parts, back, width, depth, stride, along, across, COLS: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """Some columns of a matrix [depth, width], and zeros up to the next row."""
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
    rows = tl.arange(0, DEPTH)
    there = (rows < depth)[:, None] & (cols < width)[None, :]
    value = tl.load(w + rows[:, None] * along + cols[None, :] * across, there, 0)
    place = parts + rows[:, None] * stride + cols[None, :]
    room = (rows < depth)[:, None] & (cols < stride)[None, :]
    if parts.dtype.element_ty == tl.bfloat16:
        tl.store(place, value.to(tl.bfloat16), room)
    else:
        up, down = scales(tl.max(tl.abs(value), 0))
        upper, lower = halves(value * up[None, :])
        tl.store(place, upper, room)
        tl.store(place + depth * stride, lower, room)
        tl.store(back + cols, down, cols < width)


@kernel
def _split_kernel(
    w, parts, back, size,
    N: tl.constexpr, K: tl.constexpr, N_STRIDE: tl.constexpr, K_STRIDE: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    if tl.program_id(1) == 0:
        _split_columns(w, parts, back, N, K, N_STRIDE, 1, K, COLS, DEPTH)
    else:
        _split_columns(w, parts + size, back + N, K, N, K_STRIDE, K, 1, COLS, DEPTH)


def split_weight(weight: Tensor, mixed: bool = False) -> Halves | None:
    """A wide weight in halves; a narrow one is not worth it. ``mixed``: in bfloat16 instead, of any width."""
    n, k = weight.shape
    if max(n, k) <= NARROW and not mixed:
        return None
    launch, grid, size = _splitting(n, k)
    parts = weight.new_empty(2, size, dtype=torch.bfloat16 if mixed else torch.float16)
    back = weight.new_empty(n + k, dtype=torch.float32)
    launch(grid, weight, parts, back, size)
    return Halves(parts, back)


@cache
def _splitting(n: int, k: int) -> tuple[Launch, tuple[int, int], int]:
    """And the grid, and how many halves there are at most."""
    cols = 8
    launch = _split_kernel.launch(
        N=n, K=k, N_STRIDE=padded(n), K_STRIDE=padded(k), COLS=cols, DEPTH=next_power_of_2(max(n, k)), num_warps=4
    )
    return launch, (cdiv(max(n, k), cols), 2), 2 * max(n * padded(k), k * padded(n))
