"""The error for a name that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["unknown"]


def unknown(what: str, name: object, known: Iterable[str]) -> ValueError:
    """Says which names exist, and which was probably meant."""
    names = list(known)
    close = difflib.get_close_matches(str(name), names, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return ValueError(f"Expected {what} to be one of {', '.join(names)}, got {name!r}{hint}")
