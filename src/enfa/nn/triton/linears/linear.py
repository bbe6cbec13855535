"""linear(x) + plus, with or without a ReLU behind it, as one operation: one or two kernels forwards, three backwards."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from enfa.nn.cuda.side_stream import Aside, lend
from enfa.nn.ops.function import applied, backward_once
from enfa.nn.triton.linears.products import add_parts, tall_times
from enfa.nn.triton.linears.split import Halves, split_weight
from enfa.nn.triton.linears.wide import Normed, weight_parts, wide_times

__all__ = ["Normed", "linear"]


def _own_gradients(sums: bool, grad: Tensor, x: Tensor, gate: Tensor | None, *before: Any) -> Tensor:
    """Of the weight, and of the bias behind it."""
    shares = weight_parts(grad, x, gate=gate, sums=sums, normed=Normed(*before) if before else None)
    return add_parts(shares, 0, torch.float32)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, plus: Tensor | None, before: Normed | None, relu: bool,
        beside: Aside,
    ) -> Tensor:  # fmt: skip
        x, split = x.contiguous(), split_weight(weight, x.dtype == torch.bfloat16)
        plus = None if plus is None else plus.contiguous()
        if split is None:
            assert before is None, "the kernels for narrow weights normalise nothing that they read"
            out = tall_times(x, weight, bias, False, relu=relu, plus=plus)
        else:
            out = wide_times(x, split, weight.shape, bias, False, relu=relu, normed=before, plus=plus)
        ctx.save_for_backward(x, weight, out if relu else None, *(split or (None, None)), *(before or ()))
        ctx.biased, ctx.beside = bias is not None, beside
        return out

    @staticmethod
    @backward_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, gate, halves, back, *before = ctx.saved_tensors
        inputs, *own, added = ctx.needs_input_grad[:4]
        grad, size, of_x, of_weight, of_bias = grad.contiguous(), weight.numel(), None, None, None
        if added and gate is not None:  # what the ReLU lets through is a gradient by itself
            grad, gate = torch.ops.aten.threshold_backward(grad, gate, 0), None
        if inputs and halves is not None:
            of_x = wide_times(grad, Halves(halves, back), weight.shape, None, True, gate=gate)
        elif inputs:
            of_x = tall_times(grad, weight, None, True, gate=gate)
        if any(own):
            both = ctx.beside.run(partial(_own_gradients, ctx.biased), grad, x, gate, *before)
            of_weight, of_bias = both[:size].view_as(weight), both[size:] if ctx.biased else None
        return of_x, of_weight, of_bias, grad if added else None, None, None, None


def linear(
    x: Tensor, weight: Tensor, bias: Tensor | None, relu: bool = False, *, plus: Tensor | None = None,
    before: Normed | None = None,
) -> Tensor:  # fmt: skip
    """``x @ weight.T + bias + plus``, and a ReLU behind it.

    ``before``: the norm and ReLU that x, if its weight is wide, goes through first; x gets the gradient of normalised rows.
    """
    weight, bias, beside = lend(weight, bias)
    return applied(_Linear, x, weight, bias, plus, before, relu, beside)
