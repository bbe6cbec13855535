"""Dropout keyed by rows in one pass: the mask is drawn where it is used, forwards and again backwards, and never stored.

The numbers are those of ``enfa.plan.identity.mix64``, so the masks are those that every other device draws.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from enfa.nn.ops.function import applied, backward_once
from enfa.nn.triton.launch import cdiv, kernel, next_power_of_2
from enfa.plan.derived.identity import MULTIPLIERS

__all__ = ["kept", "keyed_dropout", "salt_of", "scale_of", "threshold_of"]

_FIRST, _SECOND, _THIRD = (tl.constexpr(m) for m in MULTIPLIERS)


@triton.jit
def _mixed(value):
    value = value * _FIRST
    value = (value ^ ((value >> 29) & 0x7FFFFFFFF)) * _SECOND
    value = (value ^ ((value >> 32) & 0xFFFFFFFF)) * _THIRD
    return value ^ ((value >> 29) & 0x7FFFFFFFF)


@triton.jit
def salt_of(seed):
    return _mixed(tl.load(seed))


@triton.jit
def kept(identity, rows, there, cols, salt, THRESHOLD: tl.constexpr, SCALE: tl.constexpr):
    """What some rows are multiplied by: SCALE, or 0 where they are dropped."""
    row = _mixed(tl.load(identity + rows, there, 0) + salt)
    drawn = _mixed(row[:, None] + _mixed(cols.to(tl.int64))[None, :]) >> 11
    return tl.where(drawn >= THRESHOLD, SCALE, 0.0)


@kernel(do_not_specialize=["R"])
def _dropout_kernel(
    x, out, identity, seed, salt_out, R,
    C: tl.constexpr, THRESHOLD: tl.constexpr, SCALE: tl.constexpr, DRAWS: tl.constexpr,
    ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """``DRAWS``: forwards, where the salt comes from the seed and is kept for the way back."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    if DRAWS:
        salt = salt_of(seed)
        if (tl.program_id(0) == 0) & (tl.program_id(1) == 0):
            tl.store(salt_out, salt)
    else:
        salt = tl.load(seed)
    factor = kept(identity, rows, rows < R, cols, salt, THRESHOLD, SCALE)
    place = rows.to(tl.int64)[:, None] * C + cols[None, :]
    there = (rows < R)[:, None] & (cols < C)[None, :]
    tl.store(out + place, (tl.load(x + place, there, 0) * factor).to(out.dtype.element_ty), there)


def threshold_of(p: float) -> int:
    """Numbers are drawn from -2**52 on, 2**53 of them; those below are dropped."""
    return int((p - 0.5) * 2**53)


def scale_of(p: float) -> float:
    """What is kept is multiplied by it. A plain number, as constants of kernels are: ``p`` may be one of NumPy's."""
    return float(1.0 / (1.0 - p))


def _launch(x: Tensor, identity: Tensor, p: float, seed: Tensor, salt: Tensor, draws: bool) -> Tensor:
    out, (rows, channels) = torch.empty_like(x), x.shape
    tile = {"ROWS": 32, "COLS": min(128, max(1, next_power_of_2(channels)))}
    _dropout_kernel[(cdiv(rows, tile["ROWS"]), cdiv(channels, tile["COLS"]))](
        x, out, identity, seed, salt, rows,
        C=channels, THRESHOLD=threshold_of(p), SCALE=scale_of(p), DRAWS=draws, num_warps=4, **tile,
    )  # fmt: skip
    return out


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, identity: Tensor, seed: Tensor, p: float) -> Tensor:
        salt = torch.empty_like(seed)
        out = _launch(x.contiguous(), identity, p, seed, salt, True)
        ctx.save_for_backward(identity, salt)
        ctx.p = p
        return out

    @staticmethod
    @backward_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        identity, salt = ctx.saved_tensors
        return _launch(grad.contiguous(), identity, ctx.p, salt, salt, False), *(None,) * 3


def keyed_dropout(x: Tensor, identity: Tensor, seed: Tensor, p: float) -> Tensor:
    """What dropout on Rows computes of rows [R, C] (float32, bfloat16) with identities [R], by a number drawn for the call."""
    return applied(_Dropout, x, identity.contiguous(), seed, p)
