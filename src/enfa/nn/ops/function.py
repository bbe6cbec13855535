"""Calling autograd functions of our own, without what PyTorch does for transforms (``torch.func``) that are not there.

A step calls some dozens of them, and the checks around each cost as much Python as the function itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

__all__ = ["applied", "backward_once", "uncompiled"]


def applied(function: Any, *args: Any) -> Any:
    """``function.apply(*args)``. Under a transform PyTorch itself says what it expects; a compiler reads the usual call."""
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return function.apply(*args)
    return super(torch.autograd.Function, function).apply(*args)


def uncompiled(forward: Callable[..., Any]) -> Callable[..., Any]:
    """A model's ``forward``, which ``torch.compile`` leaves as it is: it would take rows and stand-ins for tensors."""

    @wraps(forward)
    def called(*args: Any, **given: Any) -> Any:
        if torch.compiler.is_compiling():
            return torch.compiler.disable(forward)(*args, **given)
        return forward(*args, **given)

    return called


class _Refused(torch.autograd.Function):
    """A first derivative, which knows what it was computed from and cannot be differentiated."""

    @staticmethod
    def forward(ctx: Any, found: Tensor, *above: Tensor) -> Tensor:
        return found.detach()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def backward_once(backward: Callable[..., Any]) -> Callable[..., Any]:
    """PyTorch's ``once_differentiable``, which need not turn off gradients where a backward pass records none.

    Its own error hangs on no input that a second derivative could be asked of, so ``torch.autograd.grad`` goes around it, and
    leaves out without a word what comes this way.
    """

    def called(ctx: Any, *grads: Any) -> Any:
        if not torch.is_grad_enabled():
            return backward(ctx, *grads)
        with torch.no_grad():
            found = backward(ctx, *grads)
        above = [grad for grad in grads if grad is not None and grad.requires_grad]
        if not above:
            return found
        if isinstance(found, Tensor):
            return _Refused.apply(found, *above)
        return tuple(None if part is None else _Refused.apply(part, *above) for part in found)

    return called
