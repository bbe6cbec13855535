"""Tall tables in halves: written once, multiplied twice, forwards or back and for the weight's gradient.

A wide product that splits what it reads does so once for every block of columns; one that finds halves only multiplies.
Each row has a power of two of its own, and its numbers keep 22 bits, or 2**-39 of the row's largest. The power of a
gradient's row is chosen so that its products with the row of the linear's inputs are of one size within TILE rows: then the
sum over these rows, for the weight's gradient, is a plain product of halves, too. That gives away at most SLACK of the 39 bits.
Tiles in which rows differ by more (a few in a hundred, in training on molecules) are marked: their rows have powers of their
own, and are split again where they are summed.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from enfa.nn.triton.launch import Launch, cdiv, kernel, next_power_of_2
from enfa.nn.triton.linears.split import halves, padded
from enfa.nn.triton.linears.wide import Normed
from enfa.nn.triton.norm import gradient_totals, scaling_of
from enfa.nn.triton.norm_kernels import above_relu, load_scaling, normalised, row_gradients

__all__ = ["LEAST", "SLACK", "TILE", "Halved", "halve_gradient", "halve_rows", "is_halved"]

TILE = 32  # rows whose products are summed at once
SLACK = 8
LEAST = tl.constexpr(20)  # smaller exponents count as this one: the powers must be float32 numbers


class Halved(NamedTuple):
    """A table [R, C]: halves of its rows, each times a power of two."""

    parts: Tensor  # [2, R, C rounded up]
    exponents: Tensor  # [R]: float32's exponent of a row's largest number, plus what is given away; 0 for rows of zeros

    @property
    def rows(self) -> int:
        return self.parts.shape[1]


def is_halved(outs: int, ins: int) -> bool:
    """Whether products with a weight [outs, ins] take their tables in halves: below, programs see all columns anyway."""
    return min(outs, ins) > 128 and max(outs, ins) <= 1024  # a program that splits a row holds it


@triton.jit
def _exponents(most):
    """Of the largest number of each row, as they are stored; 0 for rows of zeros."""
    return tl.where(most == 0, 0, tl.maximum((most.to(tl.int32, bitcast=True) >> 23) & 255, LEAST))


@triton.jit
def _store_halves(a, exponent, parts, exponents, rows, long, cols, R, P: tl.constexpr):
    """Rows, and zeros behind them up to whole 16 bytes."""
    up = ((268 - tl.maximum(exponent, LEAST)) << 23).to(tl.float32, bitcast=True)
    upper, lower = halves(a * up[:, None])
    mask = (rows < R)[:, None] & (cols < P)[None, :]
    place = parts + long * P + cols[None, :]
    tl.store(place, upper, mask)
    tl.store(place + R.to(tl.int64) * P, lower, mask)
    tl.store(exponents + rows, exponent, rows < R)


@kernel(do_not_specialize=["R"])
def _halve_kernel(
    x, saved, weight, bias, copies, parts, exponents, R,
    C: tl.constexpr, P: tl.constexpr, NORMED: tl.constexpr, COUNTED: tl.constexpr, AFFINE: tl.constexpr, ROWS: tl.constexpr,
    COLS: tl.constexpr,
):  # fmt: skip
    """The last rows first: x was written from the first to the last, and the cache holds what was written last."""
    rows = (tl.num_programs(0) - 1 - tl.program_id(0)) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, COLS)
    inside = cols < C
    long = rows.to(tl.int64)[:, None]
    mask = (rows < R)[:, None] & inside[None, :]
    a = tl.load(x + long * C + cols[None, :], mask, 0)
    if NORMED:  # as normalise_kernel writes them: a row that stands for nothing comes out as the bias, whatever it holds
        mean, rstd = tl.load(saved + cols, inside, 0), tl.load(saved + C + cols, inside, 0)
        scale, shift = load_scaling(rstd, weight, bias, cols, inside, AFFINE, tl.float32, COLS)
        counted = (tl.load(copies + rows, rows < R, 0) > 0)[:, None]
        a = tl.where(mask, normalised(tl.where(counted, a, mean[None, :]), mean, scale, shift, True), 0)
    if COUNTED:  # a row that stands for nothing may hold anything
        a = tl.where((tl.load(copies + rows, rows < R, 0) > 0)[:, None], a, 0)
    _store_halves(a, _exponents(tl.max(tl.abs(a), 1)), parts, exponents, rows, long, cols, R, P)


def _room(x: Tensor) -> Halved:
    rows, cols = x.shape
    return Halved(x.new_empty(2, rows, padded(cols), dtype=torch.float16), x.new_empty(rows, dtype=torch.int32))


def halve_rows(x: Tensor, normed: Normed | None = None, copies: Tensor | None = None) -> Halved:
    """``normed``: the norm and ReLU that the rows go through first. ``copies``: without it, rows that count 0 are zeros."""
    (rows, cols), found = x.shape, _room(x)
    counts = normed is None and copies is not None
    first = (x, x, x, copies if counts else x) if normed is None else (normed[0], *scaling_of(*normed[:3]), normed[3])
    launch = _halving(cols, normed is not None, counts, normed is not None and normed.weight is not None)
    launch((cdiv(rows, 8),), x, *first, *found, rows)
    return found


@cache
def _halving(cols: int, normed: bool, counted: bool, affine: bool) -> Launch:
    wide = padded(cols)
    return _halve_kernel.launch(
        C=cols, P=wide, NORMED=normed, COUNTED=counted, AFFINE=affine, ROWS=8, COLS=next_power_of_2(wide), num_warps=4
    )


@triton.jit
def _gradient(
    grad, z, copies, saved, total, weight, bias, of_params, of_z, rows, here, long, cols,
    C: tl.constexpr, AFFINE: tl.constexpr, RELU: tl.constexpr, STORED: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """Some columns of what gradient_kernel writes."""
    inside = cols < C
    mask = here[:, None] & inside[None, :]
    mean, rstd = tl.load(saved + cols, inside, 0), tl.load(saved + C + cols, inside, 0)
    scale, shift = load_scaling(rstd, weight, bias, cols, inside, AFFINE, tl.float32, COLS)
    times, plain = tl.load(of_params + cols, inside, 0), tl.load(of_params + C + cols, inside, 0)
    above, normal = above_relu(grad, z, long * C + cols[None, :], mask, mean, rstd, scale, shift, RELU, tl.float32)
    a = tl.where(mask, row_gradients(above, normal, copies, rows, here, total, plain, times, scale, tl.float32), 0)
    if STORED:
        tl.store(of_z + long * C + cols[None, :], a, mask)
    return a


@kernel(do_not_specialize=["R"])
def _halve_gradient_kernel(
    grad, z, copies, saved, total_in, weight, bias, of_params, beside, of_z, parts, exponents, downs, R,
    C: tl.constexpr, P: tl.constexpr, AFFINE: tl.constexpr, RELU: tl.constexpr, STORED: tl.constexpr, SLACK: tl.constexpr,
    ROWS: tl.constexpr, COLS: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    """``beside``: exponents of the rows that the weight's gradient pairs these with. REST: columns behind the first COLS."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = rows < R
    long = rows.to(tl.int64)[:, None]
    cols, total = tl.arange(0, COLS), tl.load(total_in)
    a = _gradient(
        grad, z, copies, saved, total, weight, bias, of_params, of_z, rows, here, long, cols, C, AFFINE, RELU, STORED, COLS
    )
    most = tl.max(tl.abs(a), 1)
    if REST:
        behind = COLS + tl.arange(0, REST)
        b = _gradient(
            grad, z, copies, saved, total, weight, bias, of_params, of_z, rows, here, long, behind, C, AFFINE, RELU, STORED,
            REST,
        )  # fmt: skip
        most = tl.maximum(most, tl.max(tl.abs(b), 1))
    exponent, other = _exponents(most), tl.load(beside + rows, here, 0)
    both = (exponent > 0) & (other > 0)  # a row of zeros fits any size
    top = tl.maximum(tl.max(tl.where(both, exponent + other, 0), 0), 156)
    lack = tl.where(both, top - exponent - other, 0)
    marked = tl.max(lack, 0) > SLACK
    given = tl.where(marked, 0, lack)
    _store_halves(a, exponent + given, parts, exponents, rows, long, cols, R, P)
    if REST:
        _store_halves(b, exponent + given, parts, exponents, rows, long, behind, R, P)
    down = (tl.minimum(top - 155, 254) << 23).to(tl.float32, bitcast=True)
    tl.store(downs + tl.program_id(0), tl.where(marked, 0.0, down))


def _columns(width: int) -> dict[str, int]:
    """A power of two, and another one for the rest: 300 are 256 and 64, where 512 would leave two fifths of a program idle."""
    first = next_power_of_2(width + 1) // 2
    rest = next_power_of_2(width - first)
    # with so few registers two programs of 8 warps run on a processor at once
    return {"COLS": first, "REST": rest, "num_warps": 8 if width <= 320 else 16, "maxnreg": 128}


def halve_gradient(
    grad: Tensor, z: Tensor, copies: Tensor, saved: Tensor, total: Tensor, weight: Tensor | None, bias: Tensor | None,
    sums: Tensor, relu: bool, beside: Tensor, stored: bool,
) -> tuple[Halved, Tensor, Tensor, Tensor | None]:  # fmt: skip
    """The gradient in front of a norm, in halves; for every tile, the power of two of its products with rows of exponents
    ``beside``, or 0 where it is marked; the gradients of weight and bias [2, C]; and, ``stored``, the gradient in float32.
    """
    (rows, cols), found = z.shape, _room(z)
    of_z = torch.empty_like(z) if stored else None
    of_params = gradient_totals(sums)
    tiles = cdiv(rows, TILE)
    downs = z.new_empty(tiles, dtype=torch.float32)
    _halving_gradient(cols, weight is not None, relu, stored)(
        (tiles,), grad, z, copies, saved, total, *scaling_of(saved, weight, bias), of_params, beside,
        z if of_z is None else of_z, *found, downs, rows,
    )  # fmt: skip
    return found, downs, of_params, of_z


@cache
def _halving_gradient(cols: int, affine: bool, relu: bool, stored: bool) -> Launch:
    return _halve_gradient_kernel.launch(
        C=cols, P=padded(cols), AFFINE=affine, RELU=relu, STORED=stored, SLACK=SLACK, ROWS=TILE, **_columns(padded(cols))
    )
