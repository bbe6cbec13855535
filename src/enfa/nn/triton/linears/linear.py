"""relu(linear(x)) as one operation: one or two kernels forwards, three backwards."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from enfa.nn.cuda.side_stream import Aside, lend
from enfa.nn.triton.linears.products import add_parts, tall_times
from enfa.nn.triton.linears.split import Halves, split_weight
from enfa.nn.triton.linears.wide import weight_parts, wide_times

__all__ = ["linear_relu"]


def _own_gradients(grad: Tensor, x: Tensor, out: Tensor) -> Tensor:
    """Of the weight, and of the bias behind it."""
    return add_parts(weight_parts(grad, x, gate=out, sums=True), 0, torch.float32)


class _LinearRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, beside: Aside) -> Tensor:
        x, split = x.contiguous(), split_weight(weight)
        if split is None:
            out = tall_times(x, weight, bias, False, relu=True)
        else:
            out = wide_times(x, split, weight.shape, bias, False, relu=True)
        ctx.save_for_backward(x, weight, out, *(split or ()))
        ctx.beside = beside
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
        both = ctx.beside.run(_own_gradients, grad, x, out)
        return of_x, both[:size].view_as(weight), both[size:], None


def linear_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """``relu(x @ weight.T + bias)``."""
    return _LinearRelu.apply(x, *lend(weight, bias))
