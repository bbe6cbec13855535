"""The errors for names that do not exist, and for those that files cannot have."""

import difflib
from collections.abc import Iterable

__all__ = ["check_file_name", "unknown"]


def unknown(what: str, name: object, known: Iterable[str]) -> ValueError:
    """Says which names exist, and which was probably meant."""
    names = list(known)
    close = difflib.get_close_matches(str(name), names, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return ValueError(f"Expected {what} to be one of {', '.join(names)}, got {name!r}{hint}")


def check_file_name(what: str, name: str) -> None:
    """Refuse a name that would lead out of the folder it is meant for, on this system or another."""
    if name in ("", ".", "..") or any(c in name for c in "/\\\0"):
        raise ValueError(f"Expected {what} to be a file name, not empty and without / or \\, got {name!r}")
