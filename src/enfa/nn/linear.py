"""A linear with the ReLU behind it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from enfa.nn.triton import accelerated

__all__ = ["fusable", "rectified"]


WIDE = 64  # where wider products may be TF32's, the vendor's own kernels are the fastest


def fusable(linear: nn.Linear, x: Tensor) -> bool:
    """Whether our own kernels compute what a linear computes: nobody else has a hand in it, and it is float32."""
    plain = type(linear) is nn.Linear and not linear._forward_hooks and not linear._forward_pre_hooks
    if not plain or not accelerated(x) or x.dtype != torch.float32 or torch.is_autocast_enabled(x.device.type):
        return False
    return torch.get_float32_matmul_precision() == "highest" or max(linear.weight.shape) <= WIDE


def rectified(linear: nn.Linear, x: Tensor) -> Tensor:
    """relu(linear(x))."""
    if fusable(linear, x) and linear.bias is not None:
        from enfa.nn.triton.linear import linear_relu

        return linear_relu(x, linear.weight, linear.bias)
    return torch.relu(linear(x))
