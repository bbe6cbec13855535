"""relu(linear(x)) as one operation: one kernel forwards, three backwards."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from enfa.nn.triton.products import add_parts, tall_times
from enfa.nn.triton.split import Halves, split_weight
from enfa.nn.triton.wide import weight_parts, wide_times

__all__ = ["linear_relu"]


class _LinearRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        x, split = x.contiguous(), split_weight(weight)
        if split is None:
            out = tall_times(x, weight, bias, False, relu=True)
        else:
            out = wide_times(x, split, weight.shape, bias, False, relu=True)
        ctx.save_for_backward(x, weight, out, *(split or ()))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, out, *split = ctx.saved_tensors
        grad, size, of_x = grad.contiguous(), weight.numel(), None
        if ctx.needs_input_grad[0] and split:
            of_x = wide_times(grad, Halves(*split), weight.shape, None, True, gate=out)
        elif ctx.needs_input_grad[0]:
            of_x = tall_times(grad, weight, None, True, gate=out)
        both = add_parts(weight_parts(grad, x, gate=out, sums=True), 0, weight.dtype)
        return of_x, both[:size].view_as(weight), both[size:]


def linear_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """``relu(x @ weight.T + bias)``."""
    return _LinearRelu.apply(x, weight, bias)
