"""relu(norm(linear(x) + plus)) as one operation: two to five kernels forwards, three to six backwards.

Where a program holds the whole weight, the product's kernel takes the statistics of what it writes. Backwards, the gradient
of the linear's outputs is not stored there: it is made row by row, and used for the inputs' and the weight's gradient at
once. The bias has none: the norm takes every shift away.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from enfa.nn.cuda.side_stream import Aside, lend
from enfa.nn.ops.function import applied, backward_once
from enfa.nn.triton.launch import Launch, kernel, next_power_of_2
from enfa.nn.triton.linears.halved import Halved, halve_gradient, halve_rows, is_halved
from enfa.nn.triton.linears.halved_products import halved_parts, halved_times
from enfa.nn.triton.linears.products import TILE, add_parts, block, precision, stages, tall_times
from enfa.nn.triton.linears.split import Halves, split_weight
from enfa.nn.triton.linears.turned import turn_times, turns
from enfa.nn.triton.linears.wide import Normed, weight_parts, wide_times
from enfa.nn.triton.norm import (
    Running,
    gradient_sums,
    normalise,
    scaling_of,
    statistics,
    statistics_room,
    turn_gradient,
)
from enfa.nn.triton.norm_kernels import above_relu, load_scaling, row_gradients, total_gradients
from enfa.nn.triton.sums import accumulator, row_shares

__all__ = ["Normed", "linear_norm"]

SHARES = 256


@kernel(do_not_specialize=["R", "share", "num_parts"])
def _backward_kernel(
    grad, z, x, w, copies, saved, total_in, weight, bias, parts_in, out, of_plus, of_params, parts_out, R, share, num_parts,
    N: tl.constexpr, K: tl.constexpr, AFFINE: tl.constexpr, RELU: tl.constexpr, INPUTS: tl.constexpr, PLUS: tl.constexpr,
    PRECISION: tl.constexpr, ACC: tl.constexpr, PARTS: tl.constexpr,
    ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """From the gradient behind the ReLU to those of the norm's parameters, of x [R, K], and of w [N, K] by shares."""
    part = tl.program_id(0)
    cols = tl.arange(0, COLS)
    inside = cols < N
    k = tl.arange(0, DEPTH)
    plain, times = total_gradients(parts_in, of_params, num_parts, cols, inside, part == 0, N, PARTS)
    mean, rstd = tl.load(saved + cols, inside, 0), tl.load(saved + N + cols, inside, 0)
    scale, shift = load_scaling(rstd, weight, bias, cols, inside, AFFINE, ACC, COLS)
    total = tl.load(total_in)
    whole = tl.load(w + cols[:, None] * K + k[None, :], inside[:, None] & (k < K)[None, :], 0)
    of_weight = tl.zeros((COLS, DEPTH), ACC)
    end = tl.minimum((part + 1) * share, R)
    for start in range(part * share, end, ROWS):
        rows = start + tl.arange(0, ROWS)
        here = rows < end
        long = rows.to(tl.int64)[:, None]
        mask = here[:, None] & inside[None, :]
        above, normal = above_relu(grad, z, long * N + cols[None, :], mask, mean, rstd, scale, shift, RELU, ACC)
        of_z = row_gradients(above, normal, copies, rows, here, total, plain, times, scale, ACC)
        of_z = tl.where(mask, of_z, 0)
        if PLUS:
            tl.store(of_plus + long * N + cols[None, :], of_z.to(of_plus.dtype.element_ty), mask)
        held = here[:, None] & (k < K)[None, :]
        if INPUTS:
            of_x = tl.dot(of_z, whole, input_precision=PRECISION, out_dtype=ACC)
            tl.store(out + long * K + k[None, :], of_x.to(out.dtype.element_ty), held)
        inputs = tl.load(x + long * K + k[None, :], held, 0)
        # a row that stands for nothing, whose gradient is 0, may hold anything
        inputs = tl.where((tl.load(copies + rows, here, 0) > 0)[:, None], inputs, 0)
        of_weight = tl.dot(tl.trans(of_z), inputs, of_weight, input_precision=PRECISION, out_dtype=ACC)
    place = parts_out + part.to(tl.int64) * N * K + cols[:, None] * K + k[None, :]
    tl.store(place, of_weight, inside[:, None] & (k < K)[None, :])


@cache
def _backward(
    n: int, k: int, parts: int, affine: bool, relu: bool, inputs: bool, plus: bool, precise: str, dtype: torch.dtype,
    under_way: int,
) -> Launch:  # fmt: skip
    return _backward_kernel.launch(
        N=n, K=k, AFFINE=affine, RELU=relu, INPUTS=inputs, PLUS=plus, PRECISION=precise, ACC=accumulator(dtype),
        PARTS=next_power_of_2(parts), ROWS=TILE, COLS=block(n), DEPTH=block(k), num_warps=4, num_stages=under_way,
    )  # fmt: skip


def _weight_gradient(of_z: Tensor, x: Tensor, copies: Tensor, *before: Any) -> Tensor:
    """Of a wide weight, and zeros for the bias behind it."""
    shares = weight_parts(of_z, x, **({"normed": Normed(*before)} if before else {"copies": copies}))
    return add_parts(shares, of_z.shape[1], torch.float32)


def _halved_gradient(shape: torch.Size, downs: Tensor, *halved: Tensor) -> Tensor:
    shares = halved_parts(Halved(*halved[:2]), Halved(*halved[2:]), downs, shape)
    return add_parts(shares, shape[0], torch.float32)


class _LinearNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, w: Tensor, b: Tensor | None, plus: Tensor | None, weight: Tensor | None, bias: Tensor | None,
        copies: Tensor, eps: float, relu: bool, running: Running | None, before: Normed | None, later: bool, beside: Aside,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        x, outs, mixed = x.contiguous(), w.shape[0], x.dtype == torch.bfloat16
        split = split_weight(w, mixed)
        plus = None if plus is None else plus.contiguous()
        kept: tuple[Any, ...] = (x, *(before or ()))  # what the weight's gradient is taken from
        if split is None:
            assert before is None, "the kernels for narrow weights normalise nothing that they read"
            parts, share = row_shares(x.shape[0], TILE, SHARES)
            stats = statistics_room(x, parts, outs)
            z = tall_times(x, w, b, False, plus=plus, stats=(copies, *stats), shares=(parts, share))
        else:  # a program that holds a wide tile has no registers left for statistics
            if is_halved(*w.shape) and not mixed:
                kept = held = halve_rows(x, before, copies)
                z = halved_times(held, split, w.shape, b, False, plus=plus)
            else:
                z = wide_times(x, split, w.shape, b, False, normed=before, plus=plus)
            stats = statistics(z, copies)
        out, saved, total = normalise(z, copies, *stats, weight, bias, eps, relu, running, later)
        ctx.save_for_backward(w, weight, bias, copies, z, saved, total, *(split or (None, None)), *kept)
        ctx.relu, ctx.biased, ctx.beside = relu, b is not None, beside
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(saved, total)
        return out, saved, total

    @staticmethod
    @backward_once
    def backward(ctx: Any, grad: Tensor | None, *_: Tensor) -> tuple[Tensor | None, ...]:
        if grad is None:
            return (None,) * 13
        w, weight, bias, copies, z, saved, total, halves, back, x, *before = ctx.saved_tensors
        grad, (outs, ins) = grad.contiguous(), w.shape
        sums = gradient_sums(grad, z, copies, saved, weight, bias, ctx.relu)
        inputs, added = ctx.needs_input_grad[0], ctx.needs_input_grad[3]
        if halves is None:
            parts, share = row_shares(x.shape[0], TILE, SHARES)
            of_x, of_z = torch.empty_like(x) if inputs else None, torch.empty_like(z) if added else None
            of_params = torch.empty(2, outs, dtype=saved.dtype if weight is None else weight.dtype, device=x.device)
            shares = torch.empty(parts, outs * ins, dtype=saved.dtype, device=x.device)
            found, switches = sums.shape[0] // 2, (weight is not None, ctx.relu, inputs, added)
            _backward(outs, ins, found, *switches, precision(), x.dtype, stages(x, 2))(
                (parts,), grad, z, x, w, copies, saved, total, *scaling_of(saved, weight, bias), sums,
                x if of_x is None else of_x, z if of_z is None else of_z, of_params, shares, x.shape[0], share, found,
            )  # fmt: skip
            of_w = ctx.beside.run(partial(add_parts, zeros=outs, dtype=w.dtype), shares)
        else:
            known = (grad, z, copies, saved, total, weight, bias, sums, ctx.relu)
            split = Halves(halves, back)
            mixed = z.dtype == torch.bfloat16
            if is_halved(outs, ins) and not mixed:
                parts, exponents = x, before[0]
                held, downs, of_params, of_z = halve_gradient(*known, exponents, added)
                of_x = halved_times(held, split, w.shape, None, True) if inputs else None
                of_w = ctx.beside.run(partial(_halved_gradient, w.shape), downs, *held, parts, exponents)
            else:
                if inputs and turns(outs, ins) and not mixed:
                    of_z, of_params, of_x = turn_times(*known, split, ins)
                else:
                    of_z, of_params = turn_gradient(*known)
                    of_x = wide_times(of_z, split, w.shape, None, True) if inputs else None
                of_w = ctx.beside.run(_weight_gradient, of_z, x, copies, *before)
        of_weight, of_bias = (None, None) if weight is None else of_params.unbind(0)
        of_b = of_w[outs * ins :] if ctx.biased else None
        of_plus = of_z if added else None
        return of_x, of_w[: outs * ins].view(outs, ins), of_b, of_plus, of_weight, of_bias, *(None,) * 7


def linear_norm(
    x: Tensor, w: Tensor, b: Tensor | None, weight: Tensor | None, bias: Tensor | None, copies: Tensor, eps: float,
    relu: bool, running: Running | None, *, plus: Tensor | None = None, before: Normed | None = None, later: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """As :func:`~enfa.nn.triton.norm.counted_norm` of ``x @ w.T + b + plus``.

    With ``later`` the rows come as they are in front of the norm, for another linear that is told of the norm ``before``
    its inputs and normalises them as it reads them. The gradient between the two is that of normalised rows.
    """
    w, b, beside = lend(w, b)
    return applied(_LinearNorm, x, w, b, plus, weight, bias, copies, eps, relu, running, before, later, beside)
