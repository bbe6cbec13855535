"""Names of a package that are imported when they are first used.

Importing PyTorch takes seconds, and ``enfa --help``, or a setting that does not exist, needs none of it. So packages on the way
to what needs no PyTorch (names of datasets, of models, settings) import nothing by themselves::

    if TYPE_CHECKING:
        from enfa.graphs.check import check_graphs
    else:
        __getattr__, __dir__ = lazily(__name__, {"enfa.graphs.check": "check_graphs"})

Type checkers read the first branch, ``from enfa.graphs import check_graphs`` finds the name by the second.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any

__all__ = ["lazily"]


def lazily(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package: its ``names``, by the modules that have them, and its own modules."""
    where = {name: module for module, found in names.items() for name in found.split()}

    def find(name: str) -> Any:
        if name in where:
            value = getattr(import_module(where[name]), name)
        elif not name.startswith("_") and find_spec(f"{package}.{name}") is not None:
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)  # not asked for again
        return value

    def every() -> list[str]:
        own = sys.modules[package]
        return sorted({*vars(own), *where, *(module.name for module in iter_modules(own.__path__))})

    return find, every
