"""Arrays of one structure, made again and again with other tensors: a batch is a hundred of them in sixty holders."""

from typing import Any, Generic, TypeVar

from torch import Tensor

from enfa.plan.arrays import Arrays, names

__all__ = ["Mould"]

T = TypeVar("T", bound=Arrays)


class Mould(Generic[T]):
    """What ``value.map`` makes, without looking at every part anew. Tensors come in the order of ``value.leaves()``."""

    def __init__(self, value: T) -> None:
        self._places = {id(tensor): place for place, tensor in enumerate(value.leaves())}
        self._count = len(self._places)
        # what is made, what it holds in all of them, and which of those made before it holds under which name
        self._steps: list[tuple[Any, Any, list[tuple[Any, int]]]] = []
        self._place(value)

    def _place(self, value: Any) -> int | None:
        """Where it comes among all that are made; None: it is the same in all."""
        if id(value) in self._places:
            return self._places[id(value)]
        kind: Any = type(value)
        same: Any
        if isinstance(value, Arrays):
            same = {name: getattr(value, name) for name, _ in names(kind)}
        elif kind in (dict, list, tuple):
            same = dict(value) if kind is dict else list(value)
        else:
            return None
        parts = same.items() if isinstance(same, dict) else enumerate(same)
        held = [(name, place) for name, part in parts if (place := self._place(part)) is not None]
        if kind is tuple and not held:
            return None
        self._steps.append((kind, same, held))
        self._count += 1
        if isinstance(value, Arrays):  # what is held in several places stays shared
            self._places[id(value)] = self._count - 1
        return self._count - 1

    def filled(self, tensors: list[Tensor]) -> T:
        made: list[Any] = list(tensors)
        for kind, same, held in self._steps:
            new = same.copy()
            for name, place in held:
                new[name] = made[place]
            if kind is tuple:
                new = tuple(new)
            elif kind is not dict and kind is not list:
                there, new = new, object.__new__(kind)
                new.__dict__ = there
            made.append(new)
        return made[-1]
