"""What modules hold beside parameters, buffers and parts: lists, dictionaries, objects of the user's classes, and what is in
them; what their classes hold; and globals that their methods name.

Python reads it where a captured graph does not, so it is compared before every replay, and put back after a rehearsal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from operator import is_, itemgetter
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from torch import Tensor, nn

__all__ = ["SIMPLE", "Boxes", "Unwatched", "alike", "put_back"]

SIMPLE = (bool, int, float, complex, str, bytes, type(None))
MOST = 20_000  # values, and bytes of arrays, that are compared before every call
# whose objects change on their own, and are no settings
_FOREIGN = {
    "builtins", "torch", "logging", "threading", "_thread", "weakref", "multiprocessing", "typing", "inspect", "enum", "abc"
}  # fmt: skip


_OURS = {*_FOREIGN, "enfa", "torch_geometric", "numpy"}  # whose functions read nothing that changes
_EMPTY = object()


class Unwatched:
    """What a module keeps that is no part of it."""


_WHOLE = (
    *SIMPLE, nn.Module, Tensor, type, Unwatched, BuiltinFunctionType, ModuleType
)  # fmt: skip


def alike(now: Iterable[Any], before: Iterable[Any]) -> bool:
    """Whether values are the same, or the same numbers or words."""
    return all(a is b or (type(a) is type(b) and type(a) in SIMPLE and a == b) for a, b in zip(now, before))


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _EMPTY


def _foreign(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in _FOREIGN


class Boxes:
    """All that can be reached from some values, without modules and tensors. ``classes``: those that the values are read by.

    ``values``: what is in the boxes. ``countless``: too much to be looked at.
    """

    def __init__(self, values: Iterable[Any], classes: Iterable[type]) -> None:
        self._boxes: list[Any] = []  # lists, sets, dictionaries, those of objects
        self._views: list[Any] = []  # of them, which stay up to date
        self._arrays: list[np.ndarray] = []
        self._globals: list[tuple[Any, dict[str, Any], list[str]]] = []  # how they are read, where, and their names
        self._cells: list[CellType] = []
        self._classes: dict[type, Any] = {}
        self.values: list[Any] = []
        self.countless = False
        seen: set[int] = set()
        ahead = [*values, *self._of_classes(classes)]
        while ahead and not self.countless:
            value = ahead.pop()
            if isinstance(value, _WHOLE) or id(value) in seen:
                continue
            seen.add(id(value))
            inside = self._inside(value)
            self.values += inside
            ahead += inside
            self.countless = len(self.values) + sum(a.nbytes for a in self._arrays) > MOST
        self._read = self._now()
        self._bytes = [a.tobytes() for a in self._arrays]

    def _of_classes(self, classes: Iterable[type]) -> list[Any]:
        """What their attributes are, and those of the classes that they are made from."""
        new = [k for kind in classes for k in kind.__mro__ if k not in self._classes and not _foreign(k)]
        self._classes |= dict.fromkeys(new)
        for kind in new:
            self._classes[kind] = vars(kind).copy()
            self._views.append(vars(kind).values())
        return [value for kind in new for value in vars(kind).values()]

    def _inside(self, value: Any) -> list[Any]:
        if isinstance(value, dict):
            return self._boxed(value, value.keys(), value.values())
        if isinstance(value, (list, set, deque)):
            return self._boxed(value, value)
        if isinstance(value, (tuple, frozenset)):
            return list(value)
        if isinstance(value, partial):
            return [value.func, *value.args, value.keywords]
        if isinstance(value, MethodType):
            return [value.__self__, value.__func__]
        if isinstance(value, (staticmethod, classmethod)):
            return [value.__func__]
        if isinstance(value, property):
            return [value.fget]
        if isinstance(value, FunctionType):
            return self._of_function(value)
        if isinstance(value, np.ndarray):
            self._arrays.append(value)
        elif hasattr(value, "__dict__") and not _foreign(type(value)):
            own = vars(value)
            return [*self._boxed(own, own.keys(), own.values()), *self._of_classes([type(value)])]
        return []

    def _of_function(self, function: FunctionType) -> list[Any]:
        """Globals that it names, variables of enclosing functions, and default arguments."""
        if function.__module__ is None or function.__module__.partition(".")[0] in _OURS:
            return []
        there, inside = function.__globals__, [*(function.__defaults__ or ()), function.__kwdefaults__]
        kinds = (*SIMPLE, list, dict, set, np.ndarray)  # no objects: those of a whole program can be reached from some
        named = [n for n in function.__code__.co_names if n in there and isinstance(there[n], kinds)]
        if named:
            self._globals.append((itemgetter(*named, "__name__"), there, named))  # of one name it would give no tuple
            inside += [there[name] for name in named]
        cells = [(cell, value) for cell in function.__closure__ or () if (value := _content(cell)) is not _EMPTY]
        self._cells += [cell for cell, _ in cells]
        return inside + [value for _, value in cells]

    def _boxed(self, box: Any, *views: Any) -> list[Any]:
        self._boxes.append(box)
        self._views += views
        return list(chain.from_iterable(views))

    def _now(self) -> list[Any]:
        found = list(chain.from_iterable(self._views))
        for read, there, _ in self._globals:
            found += read(there)
        found += map(_content, self._cells)
        return found

    def same(self) -> bool:
        """Whether all of it is as it was."""
        try:
            now = self._now()
        except KeyError:  # a global has gone
            return False
        if len(now) != len(self._read) or not (all(map(is_, now, self._read)) or alike(now, self._read)):
            return False
        return not self._arrays or [a.tobytes() for a in self._arrays] == self._bytes

    def kept(self) -> Callable[[], None]:
        """Puts everything back as it is now."""
        boxes = [(box, box.copy()) for box in self._boxes]
        arrays = [(array, array.copy()) for array in self._arrays]
        named = [(there, {name: there[name] for name in names}) for _, there, names in self._globals]
        cells = [(cell, _content(cell)) for cell in self._cells]

        def back() -> None:
            for box, before in boxes:
                put_back(box, before)
            for array, before in arrays:
                if array.flags.writeable:
                    array[...] = before
            for there, before in named:
                there.update(before)
            for cell, value in cells:
                if _content(cell) is not value:
                    cell.cell_contents = value
            for kind, before in self._classes.items():
                for name in vars(kind).keys() - before.keys():
                    delattr(kind, name)
                for name, value in before.items():
                    if vars(kind).get(name) is not value:
                        setattr(kind, name, value)

        return back


def put_back(box: Any, before: Any) -> None:
    if isinstance(box, dict):
        if list(box) != list(before) or not all(map(is_, box.values(), before.values())):
            box.clear()
            box.update(before)
    elif len(box) != len(before) or not all(map(is_, box, before)):
        box.clear()
        (box.update if isinstance(box, set) else box.extend)(before)
