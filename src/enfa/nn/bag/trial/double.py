"""A conv in double precision, for trying it: a copy, so that nothing of the user's changes.

Where a conv cannot be had in float64, something raises, or a number of lower precision is seen on the way (:class:`Seen`).
"""

from __future__ import annotations

from collections import OrderedDict
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

__all__ = ["Seen", "in_double"]

_FINE = (torch.float64, torch.complex128)


def in_double(value: Any, memo: dict[int, nn.Module] | None = None) -> Any:
    """Tensors, modules, and lists, tuples and dictionaries of them, in float64. Whatever else there is stays the same."""
    memo = {} if memo is None else memo
    if isinstance(value, nn.Module):
        return _copied(value, memo)
    if isinstance(value, MethodType) and isinstance(value.__self__, nn.Module):
        return MethodType(value.__func__, _copied(value.__self__, memo))
    if type(value) in (list, tuple):
        return type(value)(in_double(part, memo) for part in value)
    if type(value) in (dict, OrderedDict):
        return type(value)((key, in_double(part, memo)) for key, part in value.items())
    if isinstance(value, nn.Parameter):  # it stays one: the watch over messages tells parameters from messages
        return nn.Parameter(_cast(value), requires_grad=False)
    return _cast(value) if type(value) is Tensor else value  # stand-ins for tensors have no values


def _cast(value: Tensor) -> Tensor:
    return value.detach().to(torch.float64 if value.is_floating_point() else value.dtype, copy=True)


def _copied(module: nn.Module, memo: dict[int, nn.Module]) -> nn.Module:
    """As a view is made (:mod:`enfa.nn.bag.views`): ``copy.deepcopy`` would copy all that a user's module points to."""
    if id(module) not in memo:
        memo[id(module)] = new = object.__new__(type(module))
        new.__dict__.update({name: in_double(own, memo) for name, own in vars(module).items()})
    return memo[id(module)]


class Seen(TorchFunctionMode):
    """Whether numbers of less than double precision were made: they are rounded, whatever precision they end in."""

    coarse = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if isinstance(found, Tensor) and (found.is_floating_point() or found.is_complex()) and found.dtype not in _FINE:
            self.coarse = True
        return found
