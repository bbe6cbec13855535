"""A linear over few rows, and the ReLU behind it: one kernel forwards, one backwards.

Heads have a row per graph and edge features one per kind of edge. There launches are what costs, and libraries made for
large products start up to five kernels for each.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from enfa.nn.ops.function import applied, backward_once
from enfa.nn.triton.launch import Kernel, Launch, cdiv, kernel
from enfa.nn.triton.linears.products import gated, precision
from enfa.nn.triton.sums import accumulator

__all__ = ["MOST_ROWS", "small_linear"]

MOST_ROWS = 1024
TILE = {"ROWS": 32, "COLS": 32, "DEPTH": 64}


@kernel(do_not_specialize=["R"])
def _small_forward_kernel(
    x, w, bias, out, R,
    N: tl.constexpr, K: tl.constexpr, BIAS: tl.constexpr, RELU: tl.constexpr, PRECISION: tl.constexpr,
    ACC: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """out [R, N] = x [R, K] times the transpose of w [N, K]."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    there, inside = (rows < R)[:, None], (cols < N)[None, :]
    total = tl.zeros((ROWS, COLS), ACC)
    for first in range(0, K, DEPTH):
        k = first + tl.arange(0, DEPTH)
        a = tl.load(x + rows[:, None] * K + k[None, :], there & (k < K)[None, :], 0).to(ACC)
        b = tl.load(w + cols[None, :] * K + k[:, None], inside & (k < K)[:, None], 0)
        total = tl.dot(a, b, total, input_precision=PRECISION, out_dtype=ACC)
    if BIAS:
        total += tl.load(bias + cols, cols < N, 0).to(ACC)[None, :]
    if RELU:
        total = tl.where(total <= 0, 0, total)  # not the maximum, which hides NaN
    tl.store(out + rows[:, None] * N + cols[None, :], total.to(out.dtype.element_ty), there & inside)


@kernel(do_not_specialize=["R", "of_inputs"])
def _small_backward_kernel(
    grad, out, x, w, of_x, of_w, of_b, R, of_inputs,
    N: tl.constexpr, K: tl.constexpr, BIAS: tl.constexpr, RELU: tl.constexpr, PRECISION: tl.constexpr,
    ACC: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """The first ``of_inputs`` programs make a tile of the inputs' gradient each, the others one of the weight's."""
    program = tl.program_id(0)
    across: tl.constexpr = (K + COLS - 1) // COLS
    total = tl.zeros((ROWS, COLS), ACC)
    if program < of_inputs:
        rows = (program // across) * ROWS + tl.arange(0, ROWS)
        k = (program % across) * COLS + tl.arange(0, COLS)
        there, inside = (rows < R)[:, None], (k < K)[None, :]
        for first in range(0, N, DEPTH):
            n = first + tl.arange(0, DEPTH)
            a = gated(grad, out, rows[:, None] * N + n[None, :], there & (n < N)[None, :], RELU).to(ACC)
            b = tl.load(w + n[:, None] * K + k[None, :], (n < N)[:, None] & inside, 0)
            total = tl.dot(a, b, total, input_precision=PRECISION, out_dtype=ACC)
        tl.store(of_x + rows[:, None] * K + k[None, :], total.to(of_x.dtype.element_ty), there & inside)
    else:
        number = program - of_inputs
        n = (number // across) * ROWS + tl.arange(0, ROWS)
        k = (number % across) * COLS + tl.arange(0, COLS)
        there, inside = (n < N)[:, None], (k < K)[None, :]
        sums = tl.zeros((DEPTH, ROWS), ACC)
        for first in range(0, R, DEPTH):
            rows = first + tl.arange(0, DEPTH)
            here = rows < R
            a = gated(grad, out, rows[:, None] * N + n[None, :], here[:, None] & (n < N)[None, :], RELU).to(ACC)
            b = tl.load(x + rows[:, None] * K + k[None, :], here[:, None] & inside, 0).to(ACC)
            total = tl.dot(tl.trans(a), b, total, input_precision=PRECISION, out_dtype=ACC)
            if BIAS:
                sums += a
        tl.store(of_w + n[:, None] * K + k[None, :], total.to(of_w.dtype.element_ty), there & inside)
        if BIAS:
            tl.store(of_b + n, tl.sum(sums, 0).to(of_b.dtype.element_ty), (n < N) & (number % across == 0))


@cache
def _launch(of: Kernel, n: int, k: int, bias: bool, relu: bool, precise: str, dtype: torch.dtype) -> Launch:
    return of.launch(N=n, K=k, BIAS=bias, RELU=relu, PRECISION=precise, ACC=accumulator(dtype), num_warps=4, **TILE)


class _Small(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, relu: bool, mixed: bool) -> Tensor:
        x, (outs, ins) = x.contiguous(), weight.shape
        out = x.new_empty(x.shape[0], outs, dtype=torch.bfloat16 if mixed else x.dtype)
        grid = (cdiv(x.shape[0], TILE["ROWS"]), cdiv(outs, TILE["COLS"]))
        launch = _launch(_small_forward_kernel, outs, ins, bias is not None, relu, precision(), x.dtype)
        launch(grid, x, weight, weight if bias is None else bias, out, x.shape[0])
        ctx.save_for_backward(x, weight, out if relu else None)
        ctx.relu, ctx.biased = relu, bias is not None
        return out

    @staticmethod
    @backward_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, out = ctx.saved_tensors
        grad, (outs, ins) = grad.contiguous(), weight.shape
        of_x = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        of_w = torch.empty_like(weight)
        of_b = weight.new_empty(outs) if ctx.biased else None
        across = cdiv(ins, TILE["COLS"])
        of_inputs = across * cdiv(x.shape[0], TILE["ROWS"]) if of_x is not None else 0
        _launch(_small_backward_kernel, outs, ins, ctx.biased, ctx.relu, precision(), x.dtype)(
            (of_inputs + across * cdiv(outs, TILE["ROWS"]),),
            grad, grad if out is None else out, x, weight, x if of_x is None else of_x, of_w, of_w if of_b is None else of_b,
            x.shape[0], of_inputs,
        )  # fmt: skip
        return of_x, of_w, of_b, None, None


def small_linear(x: Tensor, weight: Tensor, bias: Tensor | None, relu: bool, mixed: bool = False) -> Tensor:
    """``x @ weight.T + bias``, with ``relu`` behind it, for at most MOST_ROWS rows (more would take long, not fail).

    ``mixed``: the result is bfloat16, computed in float32 from x in either of the two.
    """
    return applied(_Small, x, weight, bias, relu, mixed)
