"""What the constructors of models take."""

import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["arguments", "without_defaults"]


def arguments(made: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """All arguments of a constructor, also those that it hands on to its parents' as ``**options``; or of a function."""
    found: dict[str, inspect.Parameter] = {}
    every = [vars(base)["__init__"] for base in made.__mro__ if "__init__" in vars(base)] if isinstance(made, type) else [made]
    for function in every:
        params = list(inspect.signature(function).parameters.values())[isinstance(made, type) :]
        for param in params:
            if param.kind in (param.POSITIONAL_OR_KEYWORD, param.KEYWORD_ONLY):
                found.setdefault(param.name, param)
        if not any(param.kind == param.VAR_KEYWORD for param in params):
            break
    return found


def without_defaults(cls: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """A value that is the default anyway is left out: a model need not take all that its parents do."""
    takes = arguments(cls)
    return {name: value for name, value in given.items() if name not in takes or value != takes[name].default}
