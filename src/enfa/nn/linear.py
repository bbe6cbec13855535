"""Linears, with the ReLU behind them."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.modules.module import _global_forward_hooks, _global_forward_pre_hooks

from enfa.nn.triton import accelerated

__all__ = ["fusable", "hooked", "in_a_row", "linear_of", "plain", "through"]


WIDE = 64  # where wider products may be TF32's, the vendor's own kernels are the fastest
WIDEST = 4096  # our own kernels hold whole columns of a weight, and would take minutes to compile for much longer ones


def hooked(module: nn.Module) -> bool:
    """Whether somebody else has a hand in what a module computes: hooks make weights, or look on.

    So does a ``forward`` that was put into the module itself.
    """
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    own = "forward" in vars(module) or any(getattr(module, name) for name in hooks)
    return own or bool(_global_forward_hooks or _global_forward_pre_hooks)


def plain(linear: nn.Module) -> bool:
    """Whether a linear computes what its weight and bias say."""
    return type(linear) is nn.Linear and not hooked(linear)


def fusable(linear: nn.Linear, x: Tensor, ins: int | None = None) -> bool:
    """Whether our own kernels compute what a linear computes, of x or of such rows with ``ins`` columns."""
    if not plain(linear) or not accelerated(x) or x.dtype != torch.float32 or torch.is_autocast_enabled(x.device.type):
        return False
    weight, bias = linear.weight, linear.bias
    if not weight.is_contiguous() or weight.dtype != x.dtype or not weight.numel():
        return False
    if weight.shape[1] != (x.shape[1] if ins is None else ins):
        return False  # a kernel would read on; the linear itself says what is wrong
    if bias is not None and not bias.is_contiguous():
        return False
    most = WIDEST if torch.get_float32_matmul_precision() == "highest" else WIDE
    return max(weight.shape) <= most


def linear_of(linear: nn.Linear, x: Tensor, relu: bool = False) -> Tensor:
    """linear(x), and a ReLU behind it; in one go where our own kernels can."""
    if x.ndim == 2 and len(x) and fusable(linear, x):
        from enfa.nn.triton.linear import linear_relu
        from enfa.nn.triton.small import MOST_ROWS, small_linear

        if len(x) <= MOST_ROWS:
            return small_linear(x, linear.weight, linear.bias, relu)
        if relu and linear.bias is not None:
            return linear_relu(x, linear.weight, linear.bias)
    out = linear(x)
    return torch.relu(out) if relu else out


def through(modules: nn.Module, x: Tensor) -> Tensor:
    """modules(x); on CUDA, where they stand in a row, every linear and the ReLU behind it in one go."""
    if not accelerated(x) or type(modules) is not nn.Sequential:
        return modules(x)
    return in_a_row(modules, x)


def in_a_row(modules: nn.Sequential, x: Tensor) -> Tensor:
    steps = list(modules)
    if any(hooked(m) for m in [modules, *steps]):
        return modules(x)
    done = False
    for module, behind in zip(steps, [*steps[1:], None]):
        if done:
            done = False
        elif isinstance(module, nn.Linear):
            done = type(behind) is nn.ReLU
            x = linear_of(module, x, done)
        else:
            x = module(x)
    return x
