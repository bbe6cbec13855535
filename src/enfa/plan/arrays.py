"""Dataclasses of tensors: walked, moved and counted as a whole."""

from collections.abc import Callable, Container
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

__all__ = ["Arrays", "Places", "names", "tensor"]

T = TypeVar("T", bound="Arrays")


def tensor(array: np.ndarray) -> Tensor:
    """int64 for index arrays, whatever they were; copies only where it must."""
    if array.dtype.kind in "iu" and array.dtype != np.int64:
        array = array.astype(np.int64)
    return torch.from_numpy(array if array.flags.c_contiguous else np.ascontiguousarray(array))


@dataclass(eq=False)
class Arrays:
    """Moves, and counts the bytes of, whatever tensors a dataclass holds, those in its ``cache`` too.

    What is held in several places (the links that all layers of a full plan share) is visited once and stays shared.
    A tensor on the device "meta" has a shape and no values, which nothing reads any more.
    """

    def map(self: T, change: Callable[[Tensor], Tensor], cached: bool = True) -> T:
        """The same structure with every tensor changed, always visited in the same order.

        ``cached=False`` leaves out what was derived from the arrays.
        """
        return _mapped(self, change, cached, {})

    def changed(self: T, **changes: Any) -> T:
        """``dataclasses.replace`` that keeps what was derived."""
        new = replace(self, **changes)
        kind: Any = type(self)
        for name, derived in names(kind):
            if derived:
                setattr(new, name, getattr(self, name))
        return new

    def to(self: T, device: Any, non_blocking: bool = False) -> T:
        if isinstance(device, torch.dtype):  # which most arrays, being indices, could not have
            raise TypeError(f"Expected a device to move a plan to, got {device}: make the plan with a model in that precision")
        return self.map(lambda t: t if t.is_meta else t.to(device, non_blocking=non_blocking))

    def pin_memory(self: T) -> T:
        return self.map(lambda t: t if t.is_meta else t.pin_memory())

    def tensors(self, cached: bool = True) -> list[Tensor]:
        """Every tensor held that has values, each once, in the order of :meth:`map`."""
        return [tensor for tensor in self.leaves(cached) if not tensor.is_meta]

    def leaves(self, cached: bool = True) -> list[Tensor]:
        """As :meth:`tensors`, those without values too."""
        found: dict[int, Any] = {}
        _visit(self, cached, found)
        return [value for value in found.values() if isinstance(value, Tensor)]


# Functions of their own: one that calls itself from within another is a cycle, which would keep the arrays of a batch
# until Python collects garbage.


def _mapped(value: Any, change: Callable[[Tensor], Tensor], cached: bool, done: dict[int, Any]) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(v, change, cached, done) for v in value)
    if isinstance(value, dict):
        # a list first: another thread that runs on the same plan may add to its cache
        return {k: _mapped(v, change, cached, done) for k, v in list(value.items())}
    if not isinstance(value, (Tensor, Arrays)):
        return value
    if id(value) not in done:
        if isinstance(value, Tensor):
            done[id(value)] = change(value)
        else:
            kind: Any = type(value)
            fields_of = names(kind)
            parts = {n: _mapped(getattr(value, n), change, cached, done) for n, derived in fields_of if not derived}
            new = replace(value, **parts)
            for name, derived in fields_of:
                if derived and cached:
                    setattr(new, name, _mapped(getattr(value, name), change, cached, done))
            done[id(value)] = new
    return done[id(value)]


def _visit(value: Any, cached: bool, found: dict[int, Any]) -> None:
    """Note tensors and their holders, each once, in the order of :func:`_mapped`."""
    if isinstance(value, Tensor):
        found.setdefault(id(value), value)
    elif isinstance(value, Arrays):
        if id(value) not in found:
            found[id(value)] = value
            kind: Any = type(value)
            for name, derived in names(kind):
                if cached or not derived:
                    _visit(getattr(value, name), cached, found)
    elif isinstance(value, (list, tuple)):
        for v in value:
            _visit(v, cached, found)
    elif isinstance(value, dict):
        for v in list(value.values()):
            _visit(v, cached, found)


class Places:
    """Where a value has its tensors with values: the same places of another value are found without searching it.

    ``only``: those whose ``id`` is among these.
    """

    def __init__(self, value: Arrays, only: Container[int] | None = None) -> None:
        self._tree = _tree(value, set(), only)

    def tensors(self, value: Arrays) -> list[Tensor] | None:
        """In the order of :meth:`Arrays.tensors`; None where the value is made otherwise."""
        found: list[Tensor] = []
        try:
            return found if _pick(value, self._tree, found) else None
        except (LookupError, AttributeError):
            return None


# name or key or number, whether it is a name, and what is there: more of these; True: a tensor; None: nothing at all
_Tree = list[tuple[Any, bool, Any]]


def _tree(value: Any, seen: set[int], only: Container[int] | None) -> _Tree | bool | None:
    """False: nothing to look at."""
    if value is None:
        return None
    if isinstance(value, Tensor):
        new = id(value) not in seen and not value.is_meta and (only is None or id(value) in only)
        seen.add(id(value))
        return new
    steps: list[tuple[Any, bool, Any]] = []
    if isinstance(value, Arrays):
        if id(value) not in seen:
            seen.add(id(value))
            kind: Any = type(value)
            steps = [(name, True, getattr(value, name)) for name, _ in names(kind)]
    elif isinstance(value, dict):
        steps = [(key, False, part) for key, part in list(value.items())]
    elif isinstance(value, (list, tuple)):
        steps = [(number, False, part) for number, part in enumerate(value)]
    found = [(step, named, _tree(part, seen, only)) for step, named, part in steps]
    # that something is not there matters beside something that is
    return [step for step in found if step[2] is not False] if any(step[2] for step in found) else False


def _pick(value: Any, tree: Any, found: list[Tensor]) -> bool:
    for step, named, part in tree:
        there = getattr(value, step) if named else value[step]
        if part is None:
            if there is not None:
                return False
        elif part is True:
            if not isinstance(there, Tensor):
                return False
            found.append(there)
        elif not _pick(there, part, found):
            return False
    return True


@cache
def names(kind: Any) -> list[tuple[str, bool]]:
    """Fields in the order in which :meth:`Arrays.map` visits them: the arrays, then what was derived from them."""
    of = fields(kind)
    return [(f.name, False) for f in of if f.init] + [(f.name, True) for f in of if not f.init]
