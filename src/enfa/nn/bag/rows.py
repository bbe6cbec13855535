"""Rows as values: a tensor, and the table that it belongs to.

A row stands for many (subgraph, node) pairs of the conventional model, and which ones depends on the plan. What acts on each
row by itself therefore gives the same on every plan, and what mixes rows does not: it is refused. Plain modules take Rows
(``nn.Linear``, ``nn.ReLU``, ``torch.cat(..., 1)``, ``+``), because Rows speak ``__torch_function__``. ``nn.BatchNorm1d`` counts
each row as often as it stands for something, and ``nn.Dropout`` draws a mask for what a row is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from enfa.nn.bag.operations import HANDLERS, refuse

if TYPE_CHECKING:
    from enfa.nn.bag.bag import Bag

__all__ = ["EDGES", "Rows"]

EDGES = -1  # instead of the number of a step: rows are kinds of edges
_PICKS = (Tensor.__getitem__, Tensor.index_select, torch.index_select)


class Rows:
    """[R, channels] rows of one table. ``value`` is a view for reading: what is computed from it is no longer checked."""

    __slots__ = ("bag", "number", "value")

    def __init__(self, value: Tensor, bag: Bag, number: int) -> None:
        self.value, self.bag, self.number = value, bag, number

    def of(self, value: Tensor) -> Rows:
        """Other values of the same rows."""
        return Rows(value, self.bag, self.number)

    @property
    def kind(self) -> str:
        """``"pairs"``, ``"nodes"``, ``"subgraphs"`` or ``"edges"``."""
        return "edges" if self.number == EDGES else self.bag.program.steps[self.number].kind

    @property
    def shape(self) -> torch.Size:
        return self.value.shape

    @property
    def dtype(self) -> torch.dtype:
        return self.value.dtype

    @property
    def device(self) -> torch.device:
        return self.value.device

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def requires_grad(self) -> bool:
        return self.value.requires_grad

    @property
    def is_cuda(self) -> bool:
        return self.value.is_cuda

    def dim(self) -> int:
        return self.value.ndim

    def size(self, dim: int | None = None) -> Any:
        return self.value.size() if dim is None else self.value.size(dim)

    def is_floating_point(self) -> bool:
        return self.value.is_floating_point()

    def __repr__(self) -> str:
        return f"Rows({self.kind}, step {self.number}, {list(self.shape)}, {self.dtype})"

    def __len__(self) -> int:
        return len(self.value)

    @classmethod
    def __torch_function__(
        cls, func: Callable, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in _PICKS and hasattr(type(args[-1]), "picked"):
            return args[-1].picked(args[0])  # h[row] at the ends of edges, h[batch] of subgraphs
        handler = HANDLERS.get(func)
        if handler is None:
            raise refuse(func)
        return handler(func, args, kwargs or {})

    def __getattr__(self, name: str) -> Any:
        """Methods of tensors that act on each row by itself: ``h.relu()``."""
        method = getattr(Tensor, name, None)
        if name.startswith("__") or method is None:
            raise AttributeError(f"Rows have no {name!r}")
        if not callable(method):
            raise refuse(name)
        return lambda *args, **kwargs: Rows.__torch_function__(method, (Rows,), (self, *args), kwargs)

    def __bool__(self) -> bool:
        raise refuse("bool")

    def __iter__(self) -> Any:
        raise refuse("iteration over rows")


def _operator(name: str) -> Callable:
    method = getattr(Tensor, name)

    def act(self: Rows, *args: Any) -> Any:
        return Rows.__torch_function__(method, (Rows,), (self, *args))

    act.__name__ = name
    return act


for _name in (
    "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__", "__pow__", "__rpow__",
    "__neg__", "__abs__", "__matmul__", "__rmatmul__", "__getitem__", "__setitem__", "__eq__", "__ne__", "__lt__", "__le__",
    "__gt__", "__ge__", "__and__", "__or__", "__xor__", "__invert__", "__iadd__", "__isub__", "__imul__", "__itruediv__",
    "__mod__", "__floordiv__",
):  # fmt: skip
    setattr(Rows, _name, _operator(_name))
Rows.__hash__ = object.__hash__  # type: ignore[assignment]
