"""A linear with the ReLU behind it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from enfa.nn.triton import accelerated

__all__ = ["fusable", "hooked", "plain", "rectified"]


WIDE = 64  # where wider products may be TF32's, the vendor's own kernels are the fastest


def hooked(module: nn.Module) -> bool:
    """Whether somebody else has a hand in what a module computes: hooks make weights, or look on."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return any(getattr(module, name) for name in hooks)


def plain(linear: nn.Module) -> bool:
    """Whether a linear computes what its weight and bias say."""
    return type(linear) is nn.Linear and not hooked(linear)


def fusable(linear: nn.Linear, x: Tensor) -> bool:
    """Whether our own kernels compute what a linear computes."""
    if not plain(linear) or not accelerated(x) or x.dtype != torch.float32 or torch.is_autocast_enabled(x.device.type):
        return False
    if not linear.weight.is_contiguous():
        return False
    return torch.get_float32_matmul_precision() == "highest" or max(linear.weight.shape) <= WIDE


def rectified(linear: nn.Linear, x: Tensor) -> Tensor:
    """relu(linear(x))."""
    if fusable(linear, x) and linear.bias is not None:
        from enfa.nn.triton.linear import linear_relu

        return linear_relu(x, linear.weight, linear.bias)
    return torch.relu(linear(x))
