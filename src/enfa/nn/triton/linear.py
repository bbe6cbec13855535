"""relu(linear(x)) as one operation: one kernel forwards, three backwards."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from enfa.nn.triton.products import add_parts, tall_times, weight_parts
from enfa.nn.triton.split import split_weight, splits

__all__ = ["linear_relu"]


class _LinearRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        x, split = x.contiguous(), split_weight(weight) if splits(weight) else None
        out = tall_times(x, weight, bias, False, split=split, relu=True)
        ctx.save_for_backward(x, weight, split, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, split, out = ctx.saved_tensors
        grad, size = grad.contiguous(), weight.numel()
        of_x = tall_times(grad, weight, None, True, split=split, gate=out) if ctx.needs_input_grad[0] else None
        both = add_parts(weight_parts(grad, x, gate=out, bias=True), 0, weight.dtype)
        return of_x, both[:size].view_as(weight), both[size:]


def linear_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """``relu(x @ weight.T + bias)``."""
    return _LinearRelu.apply(x, weight, bias)
