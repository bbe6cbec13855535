"""A watch over a conv's own message, aggregate and update functions, which compute with plain tensors.

Each message belongs to one row, and a row stands for many (subgraph, node) pairs: what takes statistics over messages or rows,
or draws, is refused here. The watch is one of PyTorch's function modes, which belong to a thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from enfa.nn.rowwise.arguments import bound, named
from enfa.nn.rowwise.axes import REDUCTIONS, reduced_axes

__all__ = ["Watch"]

_BATCH_NORM = "input running_mean running_var weight bias training"
_DROPOUTS = "dropout alpha_dropout dropout1d dropout2d dropout3d feature_alpha_dropout dropout_ alpha_dropout_ feature_dropout"
_RANDOM = "bernoulli multinomial rand_like randn_like randint_like normal gumbel_softmax poisson rand randn randint randperm"
_DRAWN = "bernoulli_ uniform_ normal_ exponential_ random_ log_normal_ geometric_ cauchy_"


class Watch(TorchFunctionMode):
    """``lengths``: of the messages, and of the rows that send and receive them."""

    def __init__(self, conv: str, lengths: tuple[int, ...]) -> None:
        super().__init__()
        self.conv, self.lengths = conv, {n for n in lengths if n > 1}

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        check, name = _CHECKS.get(func, (None, ""))
        if check is not None and check(self.lengths, name, args, kwargs):
            raise TypeError(
                f"Expected {self.conv} to compute each message by itself, got {name} inside of its message passing, which "
                f"depends on how many messages there are, or draws for each: use it on Rows, before or after bag.propagate"
            )
        return func(*args, **kwargs)


def _trains(lengths: set[int], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return bool(bound(_BATCH_NORM, args, kwargs).get("training", False))


def _instances(lengths: set[int], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """An instance norm of a matrix takes it for one instance."""
    return bound("input", args, kwargs)["input"].ndim < 3


def _drops(lengths: set[int], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    given = bound("input p training", args, kwargs)
    return bool(given.get("p", 0.5) > 0.0 and given.get("training", given.get("train", "alpha" not in name)))


def _draws(lengths: set[int], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return name != "rrelu" or bool(kwargs.get("training", False))


def _mixes(lengths: set[int], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Numbers of all messages, or rows, at once. Parameters may be as long by chance."""
    value, dims = reduced_axes(name, args, kwargs)
    if not isinstance(value, Tensor) or isinstance(value, nn.Parameter) or isinstance(dims, Tensor):
        return False
    if not value.is_floating_point() or value.ndim == 0 or value.shape[0] not in lengths:
        return False
    listed = dims if isinstance(dims, (list, tuple)) else [dims]
    return not listed or any(type(d) is not int or d in (0, -value.ndim) for d in listed)


_CHECKS: dict[Any, tuple[Any, str]] = {
    **named(_mixes, " ".join(REDUCTIONS)),
    F.batch_norm: (_trains, "batch_norm"), F.instance_norm: (_instances, "instance_norm"), F.rrelu: (_draws, "rrelu"),
    **named(_drops, _DROPOUTS), **named(_draws, f"{_RANDOM} {_DRAWN}"),
}  # fmt: skip
