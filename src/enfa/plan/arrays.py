"""Dataclasses of tensors: walked, moved and counted as a whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, TypeVar

from torch import Tensor

__all__ = ["Arrays"]

T = TypeVar("T", bound="Arrays")


@dataclass(eq=False)
class Arrays:
    """Moves, and counts the bytes of, whatever tensors a dataclass holds, those in its ``cache`` too.

    What is held in several places (the links that all layers of a full plan share) is visited once and stays shared.
    A tensor on the device "meta" has a shape and no values: nobody needs them any more.
    """

    def map(self: T, change: Callable[[Tensor], Tensor], cached: bool = True) -> T:
        """The same structure with every tensor changed, always visited in the same order.

        ``cached=False`` leaves out what was derived from the arrays.
        """
        done: dict[int, Any] = {}

        def walk(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return type(value)(walk(v) for v in value)
            if isinstance(value, dict):
                return {k: walk(v) for k, v in value.items()}
            if not isinstance(value, (Tensor, Arrays)):
                return value
            if id(value) not in done:
                done[id(value)] = change(value) if isinstance(value, Tensor) else parts(value)
            return done[id(value)]

        def parts(value: Any) -> Any:
            new = replace(value, **{f.name: walk(getattr(value, f.name)) for f in fields(value) if f.init})
            for f in fields(value):
                if not f.init and cached:
                    setattr(new, f.name, walk(getattr(value, f.name)))
            return new

        return parts(self)

    def to(self: T, device: Any, non_blocking: bool = False) -> T:
        return self.map(lambda t: t if t.is_meta else t.to(device, non_blocking=non_blocking))

    def pin_memory(self: T) -> T:
        return self.map(lambda t: t if t.is_meta else t.pin_memory())

    def tensors(self, cached: bool = True) -> list[Tensor]:
        """Every tensor held that has values, each once, in the order of :meth:`map`."""
        return [tensor for tensor in self.leaves(cached) if not tensor.is_meta]

    def leaves(self, cached: bool = True) -> list[Tensor]:
        """As :meth:`tensors`, those without values too."""
        found: list[Tensor] = []
        done: set[int] = set()

        def walk(value: Any) -> None:
            if isinstance(value, Tensor):
                if id(value) not in done:
                    done.add(id(value))
                    found.append(value)
            elif isinstance(value, Arrays):
                if id(value) not in done:
                    done.add(id(value))
                    kind: Any = type(value)
                    for name, derived in _names(kind):
                        if cached or not derived:
                            walk(getattr(value, name))
            elif isinstance(value, (list, tuple)):
                for v in value:
                    walk(v)
            elif isinstance(value, dict):
                for v in value.values():
                    walk(v)

        walk(self)
        return found


@cache
def _names(kind: Any) -> list[tuple[str, bool]]:
    """Fields in the order in which :meth:`Arrays.map` visits them: the arrays, then what was derived from them."""
    of = fields(kind)
    return [(f.name, False) for f in of if f.init] + [(f.name, True) for f in of if not f.init]
