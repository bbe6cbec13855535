"""The errors for names that do not exist, and for those that files cannot have."""

import difflib
import os
from collections.abc import Iterable
from pathlib import Path

__all__ = ["VARIABLE", "Unnamed", "check_file_name", "check_named", "unknown"]

VARIABLE = "ENFA_CODE"  # names the files of the user's own (enfa.own_code)


class Unnamed(ValueError):
    """A name that neither the package nor a file of the user's own has."""


def unknown(what: str, name: object, known: Iterable[str]) -> ValueError:
    """Says which names exist, and which was probably meant."""
    names = list(known)
    close = difflib.get_close_matches(str(name), names, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return ValueError(f"Expected {what} to be one of {', '.join(names)}, got {name!r}{hint}")


def check_named(what: str, name: object, known: Iterable[str]) -> None:
    """Refuse a name that is none of these, nor out of a file of the user's own (:mod:`enfa.own_code`)."""
    known = list(known)
    if name not in known:
        files = [Path(text).name for text in os.environ.get(VARIABLE, "").split(os.pathsep) if text]
        hint = f"{', '.join(files)} {'has' if len(files) == 1 else 'have'} no other"
        if not files:
            hint = f"one of your own needs the file that defines it: --code FILE, or {VARIABLE}=FILE; in Python, give it itself"
        raise Unnamed(f"{unknown(what, name, known)}; {hint}")


def check_file_name(what: str, name: str) -> None:
    """Refuse a name that would lead out of the folder it is meant for, on this system or another."""
    if name in ("", ".", "..") or any(c in name for c in "/\\\0"):
        raise ValueError(f"Expected {what} to be a file name, not empty and without / or \\, got {name!r}")
