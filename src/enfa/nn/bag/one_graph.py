"""Norms of a model that is traced on one graph."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from enfa.nn.rowwise.arguments import bound

__all__ = ["norms_of_one_graph"]


class _Twice(TorchFunctionMode):
    """PyTorch's BatchNorm takes no statistics of one row, as one graph behind the last pool is: here it is given it twice."""

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is not F.batch_norm or not args or not isinstance(x := args[0], Tensor) or x.ndim != 2 or len(x) != 1:
            return func(*args, **kwargs)
        if not bound("input mean var weight bias training", args, kwargs).get("training"):
            return func(*args, **kwargs)
        return func(torch.cat([x, x]), *args[1:], **kwargs)[:1]


def norms_of_one_graph(model: nn.Module) -> AbstractContextManager[Any]:
    """For a model in evaluation mode, some norms of which take statistics all the same."""
    norms = (part for part in model.modules() if isinstance(part, nn.modules.batchnorm._BatchNorm))
    return _Twice() if any(norm.training or norm.running_mean is None for norm in norms) else nullcontext()
