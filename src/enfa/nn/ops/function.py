"""Calling autograd functions of our own, without what PyTorch does for transforms (``torch.func``) that are not there.

A step calls some dozens of them, and the checks around each cost as much Python as the function itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.function import once_differentiable

__all__ = ["applied", "backward_once"]


def applied(function: Any, *args: Any) -> Any:
    """``function.apply(*args)``. Under a transform PyTorch itself says what it expects; a compiler reads the usual call."""
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return function.apply(*args)
    return super(torch.autograd.Function, function).apply(*args)


def backward_once(backward: Callable[..., Any]) -> Callable[..., Any]:
    """``once_differentiable``, which need not turn off gradients where a backward pass records none."""
    recorded = once_differentiable(backward)

    def called(ctx: Any, *grads: Any) -> Any:
        return recorded(ctx, *grads) if torch.is_grad_enabled() else backward(ctx, *grads)

    return called
