"""How a kernel that Triton has compiled is called, once everything about a launch is known but addresses."""

from __future__ import annotations

import copy
from operator import is_
from typing import Any

__all__ = ["called"]


def called(compiled: Any, count: int) -> tuple[Any, ...] | None:
    """How a kernel of ``count`` arguments that the dispatcher has launched is called: what is called, what stands between the
    stream and the arguments, and whether these are one tuple. None where Triton's kernels are called otherwise."""
    try:
        run, between = compiled.run, (compiled.function, compiled.packed_metadata, None, None, None)
    except AttributeError:
        return None
    return _without_scratch(run, between, count) or (run, between, False)


def _without_scratch(run: Any, between: tuple[Any, ...], count: int) -> tuple[Any, ...] | None:
    """Triton's launcher looks for scratch memory in Python, which takes as long as the launch. For a kernel that has none,
    what it calls then. Seen in a copy that calls nothing: its arguments are others from one Triton to the next."""
    sizes = [size for name, size in getattr(run, "__dict__", {}).items() if name.endswith("scratch_size")]
    if not sizes or any(sizes) or not callable(getattr(run, "launch", None)):
        return None
    seen: list[tuple[Any, ...]] = []
    first, args = tuple(object() for _ in range(4)), tuple(object() for _ in range(count))
    still = copy.copy(run)
    still.launch = lambda *found: seen.append(found)
    try:
        still(*first, *between, *args)
    except Exception:  # of whatever kind: a launcher that is called otherwise is left to Triton, which launches it as before
        return None
    if len(seen) != 1 or not all(map(is_, first, seen[0])) or len(seen[0]) < 5:
        return None
    found = seen[0][4:]
    if isinstance(found[-1], tuple) and len(found[-1]) == count and all(map(is_, found[-1], args)):
        return run.launch, found[:-1], True
    same = len(found) >= count and all(map(is_, found[len(found) - count :], args))
    return (run.launch, found[: len(found) - count], False) if same else None
