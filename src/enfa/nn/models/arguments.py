"""What the constructors of models take."""

import inspect
from typing import Any

__all__ = ["arguments", "without_defaults"]


def arguments(cls: type) -> dict[str, inspect.Parameter]:
    """All arguments of a constructor, also those that it hands on to its parents' as ``**options``."""
    found: dict[str, inspect.Parameter] = {}
    for base in cls.__mro__:
        if "__init__" not in vars(base):
            continue
        params = list(inspect.signature(vars(base)["__init__"]).parameters.values())[1:]
        for param in params:
            if param.kind in (param.POSITIONAL_OR_KEYWORD, param.KEYWORD_ONLY):
                found.setdefault(param.name, param)
        if not any(param.kind == param.VAR_KEYWORD for param in params):
            break
    return found


def without_defaults(cls: type, given: dict[str, Any]) -> dict[str, Any]:
    """A value that is the default anyway is left out: a model need not take all that its parents do."""
    takes = arguments(cls)
    return {name: value for name, value in given.items() if name not in takes or value != takes[name].default}
