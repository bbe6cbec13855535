"""Rows as values: a tensor, and the table that it belongs to.

A row stands for many (subgraph, node) pairs of the conventional model, and which ones depends on the plan. What acts on each
row by itself therefore gives the same on every plan, and what mixes rows does not: it is refused. Plain modules take Rows
(``nn.Linear``, ``nn.ReLU``, ``torch.cat(..., 1)``, ``+``), because Rows speak ``__torch_function__``. ``nn.BatchNorm1d`` counts
each row as often as it stands for something, and ``nn.Dropout`` draws a mask for what a row is.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import ref

import torch
from torch import Tensor

from enfa.nn.rowwise.refusal import check_devices, check_gradients, check_precision, refuse
from enfa.nn.rowwise.sharing import MAY_SHARE, note_sharing

if TYPE_CHECKING:
    from enfa.nn.bag.bag import Bag
    from enfa.nn.rowwise.held import Held

__all__ = ["EDGES", "RowCount", "Rows"]

EDGES = -1  # instead of the number of a step: rows are kinds of edges
_TOLD = (torch.is_floating_point, Tensor.is_floating_point)  # the same for every plan
_APART = {*_TOLD, Tensor.__getitem__, Tensor.index_select, torch.index_select}


class RowCount(int):
    """The number of rows, for shapes (``h.view(h.size(0), heads, -1)``) only: what is computed with it depends on the plan.

    It may be compared with 0, and with the number of rows of the same table. What is equal is told so, and what is not is
    refused: so no plan goes another way than others. What reads it as a C integer (``range``, ``math.log``) cannot be refused.
    """

    table: tuple[int, int]

    @staticmethod
    def of(count: int, bag: Bag, number: int) -> RowCount:
        new = RowCount(count)
        new.table = id(bag), number
        return new

    def _refuse(self, *_: Any) -> NoReturn:
        raise refuse("arithmetic", "with the number of rows depends on the plan", "use bag.pool(h, 'mean') for a mean")

    def __int__(self) -> int:
        """Refused, but for PyTorch's compiler, which keeps a number beside any of these that a function is given."""
        if sys._getframe(1).f_globals.get("__name__", "").startswith("torch._dynamo."):
            return int.__int__(self)
        self._refuse()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse  # type: ignore[assignment]
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __float__ = _refuse  # type: ignore[assignment]
    __divmod__ = __rdivmod__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __and__ = __rand__ = _refuse  # type: ignore[assignment]
    __or__ = __ror__ = __xor__ = __rxor__ = __neg__ = __pos__ = __abs__ = __invert__ = __round__ = _refuse  # type: ignore[assignment]
    __trunc__ = __floor__ = __ceil__ = bit_length = bit_count = as_integer_ratio = _refuse  # type: ignore[assignment]
    __hash__ = int.__hash__


def _comparison(name: str) -> Callable:
    compare = getattr(int, name)

    def act(self: RowCount, other: Any) -> bool:
        same = isinstance(other, RowCount) and other.table == self.table
        if name in ("__eq__", "__ne__"):
            same = same or int.__eq__(self, other) is True
        if isinstance(other, int) and not same and (isinstance(other, RowCount) or other > 0):
            raise refuse("comparison", "with the number of rows depends on the plan", "compare it with 0 only")
        return compare(self, other)

    return act


for _name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
    setattr(RowCount, _name, _comparison(_name))


class Rows:
    """[R, channels] rows of one table. ``value`` is a view for reading: what is computed from it is no longer checked.

    The last operations may be held back until their values are read (:mod:`enfa.nn.rowwise.held`).
    """

    __slots__ = ("__weakref__", "_value", "activated", "bag", "held", "number", "sharing")
    held: Held | None
    sharing: list[ref[Rows]] | None  # those that share memory with others
    __array_ufunc__ = None  # so that numpy.float64(2) * h asks Rows
    is_nested = is_sparse = is_quantized = False

    def __init__(self, value: Tensor, bag: Bag, number: int) -> None:
        if not torch._C._is_fwd_grad_enabled():
            check_gradients()
        self._value, self.bag, self.number, self.held, self.activated, self.sharing = value, bag, number, None, False, None

    @property
    def value(self) -> Tensor:
        if self.held is not None:
            self.value = self.held.tensor(self.activated)
        return self._value

    @value.setter
    def value(self, value: Tensor) -> None:
        self._value, self.held, self.activated = value, None, False

    def of(self, value: Tensor) -> Rows:
        """Other values of the same rows."""
        if self._value is not None and value.shape[:1] != self._value.shape[:1]:
            raise ValueError(f"Expected values of the same {len(self._value)} rows, got {list(value.shape)}: of another step?")
        return Rows(value, self.bag, self.number)

    if TYPE_CHECKING:  # set below

        def __add__(self, other: Any) -> Rows: ...
        def __getitem__(self, index: Any) -> Rows: ...

    @property
    def kind(self) -> str:
        """``"pairs"``, ``"nodes"``, ``"subgraphs"``, or ``"edges"``."""
        return "edges" if self.number == EDGES else self.bag.program.steps[self.number].kind

    @property
    def shape(self) -> torch.Size:
        if torch.compiler.is_compiling():  # it knows plain numbers only
            return torch.compiler.disable(Rows._shape)(self)
        return self._shape()

    def _shape(self) -> torch.Size:
        if self.held is not None:
            return torch.Size((self._count(self.bag.num_rows(self.number)), self.held.width))
        count, *rest = self.value.shape
        return torch.Size((self._count(count), *rest))

    def _count(self, count: int) -> RowCount:
        return RowCount.of(count, self.bag, self.number)

    @property
    def width(self) -> int:
        """Columns, of Rows with two axes."""
        return self._value.shape[1] if self.held is None else self.held.width

    @property
    def dtype(self) -> torch.dtype:
        return self.value.dtype if self.held is None else self.held.dtype

    @property
    def device(self) -> torch.device:
        return self.bag.device

    @property
    def ndim(self) -> int:
        return self.value.ndim if self.held is None else 2

    @property
    def requires_grad(self) -> bool:
        return self.value.requires_grad

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    def dim(self) -> int:
        return self.ndim

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def __repr__(self) -> str:
        return f"Rows({self.kind}, step {self.number}, {list(self.value.shape)}, {self.dtype})"

    @classmethod
    def __torch_function__(
        cls, func: Callable, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if torch.compiler.is_compiling():  # what is held back, counted or keyed runs as it is
            return torch.compiler.disable(Rows.__torch_function__)(func, types, args, kwargs)
        if not torch._C._is_fwd_grad_enabled():
            check_gradients()
        if func in _APART:
            if func in _TOLD:
                return getattr(args[0] if args else kwargs["input"], func.__name__)()  # type: ignore[index]
            if hasattr(type(args[-1]), "picked"):
                return args[-1].picked(args[0])  # h[row] at the ends of edges, h[batch] of subgraphs
        found, kwargs = (_handlers or _all_handlers()).get(func), kwargs or {}
        if found is None:
            raise refuse(func)
        handler, name = found
        if kwargs and kwargs.get("out") is not None:
            raise refuse(func, "with out= writes into a tensor", "leave out= away")
        try:
            result = handler(func, name, args, kwargs)
        except RuntimeError as error:
            for rows in (arg for arg in args if isinstance(arg, Rows)):
                check_devices(rows.device, (*args, *kwargs.values()))
                check_precision(rows.dtype, (*args, *kwargs.values()), error)
            raise
        if name in MAY_SHARE:
            note_sharing(args[0] if args else kwargs.get("input"), result)
        return result

    def __copy__(self) -> Rows:
        new = self.of(self.value)
        note_sharing(self, new)
        return new

    def __deepcopy__(self, memo: dict[int, Any]) -> Rows:
        """Of the same plan, as an attribute of a model that is copied."""
        return self.of(copy.deepcopy(self.value, memo))

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(
            f"{self!r} belong to their plan and cannot be saved: a model that keeps them as an attribute must let go of them "
            f"before (None), or keep bag.each(h), which is a tensor"
        )

    def __getattr__(self, name: str) -> Any:
        """Methods of tensors that act on each row by itself: ``h.relu()``."""
        method = getattr(Tensor, name, None)
        if name.startswith("__") or method is None:
            raise AttributeError(f"Rows have no {name!r}")
        if not callable(method):
            raise refuse(name)
        return lambda *args, **kwargs: Rows.__torch_function__(method, (Rows,), (self, *args), kwargs)


_handlers: dict[Any, Any] = {}


def _all_handlers() -> dict[Any, Any]:
    """Of every operation that is allowed, once the files are imported that define them, which import this one."""
    from enfa.nn.rowwise.operations import HANDLERS

    _handlers.update(HANDLERS)
    return _handlers


def _operator(name: str) -> Callable:
    method = getattr(Tensor, name)

    def act(self: Rows, *args: Any) -> Any:
        return Rows.__torch_function__(method, (Rows,), (self, *args))

    act.__name__ = name
    return act


def _refused(name: str) -> Callable:
    def act(self: Rows, *args: Any, **kwargs: Any) -> NoReturn:
        raise refuse(name, "takes rows out of their table")

    return act


for _name in (
    "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__", "__pow__", "__rpow__",
    "__mod__", "__rmod__", "__floordiv__", "__rfloordiv__", "__neg__", "__pos__", "__abs__", "__matmul__", "__rmatmul__",
    "__getitem__", "__setitem__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__and__", "__rand__", "__or__",
    "__ror__", "__xor__", "__rxor__", "__invert__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__ifloordiv__",
    "__imod__", "__ipow__", "relu",
):  # fmt: skip
    setattr(Rows, _name, _operator(_name))
for _name, _what in {
    "__bool__": "bool", "__float__": "float", "__int__": "int", "__complex__": "complex", "__index__": "index",
    "__iter__": "iteration", "__reversed__": "iteration", "__contains__": "in", "__len__": "len", "__array__": "array",
    "__dlpack__": "dlpack", "__dlpack_device__": "dlpack",
}.items():  # fmt: skip
    setattr(Rows, _name, _refused(_what))
Rows.__hash__ = object.__hash__  # type: ignore[assignment]
