"""The errors for numbers that are none, or out of range."""

import math
import re
from numbers import Integral, Real
from typing import Any

import numpy as np

__all__ = ["bytes_of", "how_many", "integer", "integers", "is_whole", "real", "whole"]


def is_whole(value: object, least: int, most: int | None = None) -> bool:
    """Whether it is a whole number in the range. True is none, although Python counts it as 1."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        return False
    return least <= int(value) and (most is None or int(value) <= most)


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """``value`` as an int, where it is a whole number in the range.

    >>> whole("hops", 2, 0)
    2
    >>> whole("hops", 1.5, 0)
    Traceback (most recent call last):
    ValueError: Expected hops to be an integer >= 0, got 1.5
    """
    if is_whole(value, least, most):
        return int(value)
    limit = "" if most is None else f" and <= {most}"
    raise ValueError(f"Expected {name} to be an integer >= {least}{limit}, got {value!r}")


def integer(name: str, value: Any, bools: bool = False) -> int:
    """``value`` as an int, where nothing is lost by that: 2.0 is 2, and 1.5 is refused. ``bools``: True may stand for 1."""
    if not bools and (isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool")):
        raise ValueError(f"Expected {name} to be an integer, got {value!r}: of a mask take the numbers, mask.nonzero()")
    try:
        if int(value) == value:
            return int(value)
    except (TypeError, ValueError, OverflowError):  # None, NaN, inf
        pass
    raise ValueError(f"Expected {name} to be an integer, got {value!r}")


def integers(name: str, values: Any, bools: bool = False) -> np.ndarray:
    """The same of an array, as int64."""
    array = np.asarray(values)
    if array.dtype.kind in "iub" and (bools or array.dtype.kind != "b"):
        return array.astype(np.int64, copy=False)
    if array.dtype.kind == "b" and array.size:
        raise ValueError(f"Expected {name} to hold integers, got a mask of true and false: take the numbers, mask.nonzero()[0]")
    with np.errstate(invalid="ignore"):
        found = array.astype(np.int64)
    if not np.array_equal(found, array):
        raise ValueError(f"Expected {name} to hold integers, got {array[found != array].reshape(-1)[0]}")
    return found


def real(
    name: str,
    value: object,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> float:
    """``value`` as a float, where it is a number in the range: neither NaN nor inf.

    >>> real("dropout", 1, least=0, below=1)
    Traceback (most recent call last):
    ValueError: Expected dropout to be a number >= 0 and < 1, got 1
    """
    limits = [(">=", least), (">", above), ("<=", most), ("<", below)]
    if isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value):
        found = float(value)
        inside = (
            least is None or found >= least, above is None or found > above,
            most is None or found <= most, below is None or found < below,
        )  # fmt: skip
        if all(inside):
            return found
    words = " and ".join(f"{sign} {limit}" for sign, limit in limits if limit is not None)
    raise ValueError(f"Expected {name} to be a {f'number {words}' if words else 'finite number'}, got {value!r}")


_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def bytes_of(memory: int | str) -> int:
    """
    >>> bytes_of("2 GiB"), bytes_of("500MB"), bytes_of(4096)
    (2147483648, 500000000, 4096)
    """
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\s*", memory) if isinstance(memory, str) else None
    if found is not None and found[2].upper() in _UNITS:
        memory = int(float(found[1]) * _UNITS[found[2].upper()])
    if not isinstance(memory, int) or isinstance(memory, bool) or memory < 1:
        raise ValueError(f"Expected memory as a number of bytes, or such as '2 GiB', got {memory!r}")
    return memory


def how_many(count: int, what: str) -> str:
    """
    >>> how_many(1, "graph"), how_many(0, "graph"), how_many(1113, "graph")
    ('1 graph', '0 graphs', '1,113 graphs')
    """
    return f"{count:,} {what}{'s' * (count != 1)}"
