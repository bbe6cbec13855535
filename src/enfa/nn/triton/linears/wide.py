"""Products of tall tables with weights too wide for a program to hold, and gradients of weights of any width."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from enfa.nn.triton.launch import Launch, cdiv
from enfa.nn.triton.linears.products import block, stages
from enfa.nn.triton.linears.split import Halves, padded
from enfa.nn.triton.linears.wide_kernels import weight_kernel, wide_kernel
from enfa.nn.triton.norm import scaling_of
from enfa.nn.triton.sums import row_shares

__all__ = ["Normed", "weight_parts", "wide_times"]


class Normed(NamedTuple):
    """A counted norm and the ReLU behind it, for kernels that normalise what they read."""

    saved: Tensor  # [3, K]: mean, 1 / standard deviation, variance
    weight: Tensor | None
    bias: Tensor | None
    copies: Tensor  # [R]


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
    launch = wide_kernel.launch(
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
    grad: Tensor, x: Tensor, *, gate: Tensor | None = None, sums: bool = False, normed: Normed | None = None,
    copies: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """[shares, N * K]: ``grad.T @ x``, by shares of the rows; with ``sums`` those of grad [N] behind it.

    ``copies``: where they are 0, x may hold anything (with ``normed`` those of that norm are looked at).
    """
    assert normed is None or copies is None
    n, k = grad.shape[1], x.shape[1]
    there = normed is not None, normed is not None and normed.weight is not None, gate is not None, copies is not None
    launch, blocks = _weights(n, k, *there, sums, 3 if gate is None else stages(x, 3), x.dtype == torch.bfloat16)
    parts, _ = row_shares(x.shape[0], 32, 128 if n * k <= 2**15 else 64)
    out = x.new_empty(parts, n * k + n * sums, dtype=torch.float32)
    *norm, held = _arguments(x, normed)
    held = held if copies is None else copies
    launch((parts, blocks), grad, grad if gate is None else gate, x, *norm, held, out, x.shape[0])
    return out


@cache
def _weights(
    n: int, k: int, normed: bool, affine: bool, gated: bool, counted: bool, sums: bool, under_way: int, mixed: bool
) -> tuple[Launch, int]:  # fmt: skip
    """And how many tiles there are."""
    tile = _weight_tile(n, k, under_way, mixed)
    launch = weight_kernel.launch(
        N=n, K=k, NORMED=normed, COUNTED=counted, AFFINE=affine, GATED=gated, SUMS=sums, **tile
    )  # fmt: skip
    return launch, cdiv(n, tile["ROWS"]) * cdiv(k, tile["COLS"])


def _weight_tile(outs: int, ins: int, under_way: int, mixed: bool) -> dict[str, Any]:
    if mixed:
        return _mixed_tile(block(outs, 128), ins)
    whole = all(_one_tile(size) or size % 128 == 0 for size in (outs, ins))
    rows, cols, warps = (128, 128, 8) if whole else (block(outs), block(ins, 128), 4)
    return {"ROWS": rows, "COLS": cols, "DEPTH": 32, "num_warps": warps, "num_stages": under_way}
