"""Linears, with the ReLU after them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.module import _global_forward_hooks, _global_forward_pre_hooks

from enfa.nn.triton import accelerated, matmul_precision, mixed

if TYPE_CHECKING:
    from enfa.nn.triton.linears.wide import Normed

__all__ = ["WIDE", "called", "fusable", "linear_of", "through"]


WIDE = 64  # where wider products may be TF32's, the vendor's own kernels are the fastest
WIDEST = 4096  # our own kernels hold whole columns of a weight, and would take minutes to compile for much longer ones


def hooked(module: nn.Module) -> bool:
    """Whether hooks make a module's weights, or look at what it computes; or it has a ``forward`` of its own."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    own = "forward" in vars(module) or any(getattr(module, name) for name in hooks)
    return own or bool(_global_forward_hooks or _global_forward_pre_hooks)


def fusable(
    there: Tensor, dtype: torch.dtype, width: int, weight: Tensor, bias: Tensor | None, half: bool
) -> bool:  # fmt: skip
    """Whether our own kernels compute a linear of so wide rows, which are where the tensor ``there`` is.

    ``half``: its result is bfloat16, as autocast asks for.
    """
    if not accelerated(there) or half != torch.is_autocast_enabled(there.device.type):
        return False
    if dtype != torch.float32 and not (half and dtype == torch.bfloat16):
        return False
    if weight.dtype != torch.float32 or not weight.is_contiguous():
        return False
    outs, ins = weight.shape
    if ins != width or not outs or not ins:
        return False  # a kernel would read on; the linear itself says what is wrong
    if bias is not None and not bias.is_contiguous():
        return False
    return max(outs, ins) <= (WIDEST if half or matmul_precision() == "highest" else WIDE)


@cache
def _kernels() -> tuple[Any, Any]:
    """For tall tables, and for few rows. Imported where they are called; once, because a statement that imports takes a
    microsecond each time."""
    from enfa.nn.triton.linears import linear, small

    return linear, small


def linear_of(
    x: Tensor, weight: Tensor, bias: Tensor | None, relu: bool = False, plus: Tensor | None = None,
    before: Normed | None = None,
) -> Tensor:  # fmt: skip
    """x @ weight.T + bias + plus, and a ReLU after it; as one kernel where our own can.

    ``before``: the norm and ReLU of x, for many rows and a wide weight that is :func:`fusable`.
    """
    half = mixed(x)
    if x.ndim == 2 and x.shape[0] and fusable(x, x.dtype, x.shape[1], weight, bias, half):
        tall, small = _kernels()
        if x.shape[0] > small.MOST_ROWS or before is not None:
            # nothing is faster than TF32's products, but for what is done on the way
            if half or relu or plus is not None or matmul_precision() == "highest":
                return tall.linear(x.to(torch.bfloat16) if half else x, weight, bias, relu, plus=plus, before=before)
        elif plus is None:
            return small.small_linear(x, weight, bias, relu, half)
        else:
            out = small.small_linear(x, weight, bias, False, half) + plus
            return torch.relu(out) if relu else out
    out = F.linear(x, weight, bias)
    out = out if plus is None else out + plus
    return torch.relu(out) if relu else out


def called(module: nn.Module, x: Tensor) -> Tensor:
    """module(x) of a tensor: on CUDA a linear's own kernel, where nothing but the linear itself is asked for."""
    if type(module) is not nn.Linear or not accelerated(x) or hooked(module):
        return module(x)
    return linear_of(x, module.weight, module.bias)


def through(modules: nn.Module, x: Tensor) -> Tensor:
    """modules(x) of a tensor; on CUDA every linear of a Sequential and the ReLU after it as one kernel."""
    if type(modules) is not nn.Sequential or not accelerated(x) or any(map(hooked, [modules, *modules])):
        return modules(x)
    steps = list(modules)
    done = False
    for module, after in zip(steps, [*steps[1:], None]):
        if done:
            done = False
        elif type(module) is nn.Linear:
            done = type(after) is nn.ReLU
            x = linear_of(x, module.weight, module.bias, done)
        else:
            x = module(x)
    return x
