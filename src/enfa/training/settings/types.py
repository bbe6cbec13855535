"""Values from YAML files and command lines, against the types that settings have."""

import types
from typing import Any, Literal, Union, get_args, get_origin

from enfa.graphs.names import unknown

__all__ = ["checked", "described"]

_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false", type(None): "null"}


def described(kind: Any) -> str:
    """A type in words."""
    if get_origin(kind) in (Union, types.UnionType):
        return " or ".join(described(k) for k in get_args(kind))
    if get_origin(kind) is Literal:
        return ", ".join(str(v) for v in get_args(kind))
    if get_origin(kind) is dict:
        return "a mapping"
    if get_origin(kind) is list:
        return "a list of texts"
    return _WORDS[kind]


def _fits(value: Any, kind: Any) -> tuple[bool, Any]:
    """Whether the value is of the kind, and what it then is."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        for option in get_args(kind):
            fits, found = _fits(value, option)
            if fits:
                return True, found
        return False, value
    if origin is Literal:
        # YAML reads 32 as a number
        names = {str(v): v for v in get_args(kind)}
        return (str(value) in names and not isinstance(value, bool), names.get(str(value)))
    if origin is dict:
        return isinstance(value, dict) and all(isinstance(k, str) for k in value), value
    if origin is list:  # one text is a list of one
        given = [value] if isinstance(value, str) else value
        return isinstance(given, list) and all(isinstance(v, str) for v in given), given
    if kind is float and not isinstance(value, bool):
        try:  # YAML reads 1e-3 as text
            return isinstance(value, (int, float, str)), float(value)
        except (TypeError, ValueError):
            return False, value
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool), value
    return isinstance(value, kind), value


def checked(name: str, value: Any, kind: Any) -> Any:
    """The value as the setting's type, or a ValueError that says what was expected."""
    fits, found = _fits(value, kind)
    if fits:
        return found
    choices = [v for k in (kind, *get_args(kind)) if get_origin(k) is Literal for v in get_args(k)]
    if choices and isinstance(value, str):
        raise unknown(name, value, [str(c) for c in choices])
    raise ValueError(f"Expected {name} to be {described(kind)}, got {value!r}")
