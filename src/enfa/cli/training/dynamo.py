"""Training without the compiler of ``torch.compile``, which takes as long to import as the rest of PyTorch.

PyG, Lightning and PyTorch's optimisers import ``torch._dynamo`` to ask whether a module is compiled, or to say that a function
is not to be; nothing here compiles any. A stand-in answers both, and makes way for the real one when asked for more.
"""

from __future__ import annotations

import sys
from functools import wraps
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import FunctionType, ModuleType
from typing import Any

__all__ = ["without_dynamo"]

_NAME = "torch._dynamo"


class _Asked(type):
    def __instancecheck__(cls, value: object) -> bool:
        return not _stands_in() and isinstance(value, _real().OptimizedModule)


class OptimizedModule(metaclass=_Asked):
    """What a compiled module is: none, for as long as the stand-in is there. Some import this name, and keep it."""


def _disable(fn: Any = None, *how: Any, **more: Any) -> Any:
    if fn is None:
        return lambda other: _disable(other, *how, **more)
    disabled: Any = None

    @wraps(fn)
    def called(*args: Any, **kwargs: Any) -> Any:
        nonlocal disabled
        if disabled is None:
            if _stands_in():
                return fn(*args, **kwargs)
            disabled = _real().disable(fn, *how, **more)
        return disabled(*args, **kwargs)

    return called if isinstance(fn, FunctionType) else _real().disable(fn, *how, **more)


class _StandIn(ModuleType):
    OptimizedModule = OptimizedModule
    disable = staticmethod(_disable)

    def __init__(self) -> None:
        super().__init__(_NAME)
        self.__path__ = []  # so that parts of it are looked for, and _Parts finds them
        self.__spec__ = ModuleSpec(_NAME, None, is_package=True)

    @staticmethod
    def graph_break(*_: Any, **__: Any) -> None:
        pass

    @staticmethod
    def is_compiling() -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {_NAME!r} has no attribute {name!r}")
        return getattr(_real(), name)


class _There(Loader):
    """Of a module that importing the whole has imported."""

    def __init__(self, module: ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def create_module(self, _: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


class _Parts(MetaPathFinder):
    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        if not name.startswith(f"{_NAME}."):
            return None
        _real()
        return ModuleSpec(name, _There(sys.modules[name])) if name in sys.modules else find_spec(name)


_PARTS = _Parts()


def _stands_in() -> bool:
    return _PARTS in sys.meta_path


def _real() -> Any:
    if _stands_in():
        sys.meta_path.remove(_PARTS)
        del sys.modules[_NAME]
        vars(sys.modules["torch"]).pop("_dynamo", None)
    return import_module(_NAME)


def without_dynamo() -> None:
    """From here on, until more is wanted of it. PyTorch is imported."""
    if _NAME not in sys.modules:
        sys.modules[_NAME] = _StandIn()
        sys.modules["torch"]._dynamo = sys.modules[_NAME]  # type: ignore[attr-defined]
        sys.meta_path.insert(0, _PARTS)
