"""What a stored file must be, or it is refused by one sentence."""

from typing import Any

__all__ = ["CorruptFileError", "expect", "is_a", "whole_numbers"]


class CorruptFileError(ValueError):
    """A stored file that is not what was written."""


def expect(fits: bool, what: str, got: object) -> None:
    if not fits:
        text = repr(got)
        raise CorruptFileError(f"Expected {what}, got {text if len(text) < 80 else text[:77] + '...'}")


def is_a(value: object, kind: Any) -> bool:
    """``isinstance``, but True is no number."""
    return isinstance(value, kind) and (not isinstance(value, bool) or kind is bool)


def whole_numbers(value: object) -> bool:
    return isinstance(value, list) and all(is_a(v, int) and 0 <= v < 2**62 for v in value)
