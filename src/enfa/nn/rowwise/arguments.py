"""The arguments of an operation on Rows: by name, of one table, and the same for all rows where they are plain tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from enfa.nn.rowwise.refusal import refuse
from enfa.nn.rowwise.rows import RowCount, Rows

__all__ = ["Handler", "aligned", "bound", "made", "named", "only_input", "plain", "plainly", "rows_in"]

Handler = Callable[[Callable, str, tuple[Any, ...], dict[str, Any]], Any]
_PLACES = (torch, torch._C._VariableFunctions, F, Tensor, torch.special, torch.linalg)
# One parameter has several names: torch.sum(h, axis=1), torch.split(tensor=h, ...)
_ALIASES = {
    "axis": "dim", "dims": "dim", "self": "input", "tensor": "input", "x": "input", "A": "input", "size": "shape",
    "sizes": "shape", "mat2": "other", "axis0": "dim0", "axis1": "dim1", "vec": "other",
}  # fmt: skip


def named(handler: Any, names: str, spelling: str = "{}") -> dict[Any, tuple[Any, str]]:
    """The functions of these names, wherever PyTorch has them: torch.relu, F.relu and Tensor.relu are three.

    Their own names may be others (special_softmax), and other packages may have wrapped those of torch.
    """
    found = {}
    for name in names.split():
        spelled = spelling.format(name)
        for place in (Tensor,) if spelled.startswith("__") else _PLACES:
            if callable(func := getattr(place, spelled, None)):
                found[func] = handler, name
    return found


def rows_in(values: Iterable[Any]) -> list[Rows]:
    """All Rows among arguments, also in lists."""
    found: list[Rows] = []
    for value in values:
        if isinstance(value, Rows):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += rows_in(value)
    return found


def bound(names: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by the names of the parameters. ``*name``, the last, takes what is left: h.flip(1, 2) or h.flip([1, 2])."""
    if not kwargs and "*" not in names:
        return dict(zip(_split(names), args))
    found: dict[str, Any] = {}
    for place, name in enumerate(names.split()):
        if name.startswith("*") and len(args) > place:
            rest = args[place:]
            found[name[1:]] = rest[0] if len(rest) == 1 and isinstance(rest[0], (list, tuple)) else rest
        elif len(args) > place:
            found[name] = args[place]
    return found | {_ALIASES.get(name, name): value for name, value in kwargs.items()}


_split = cache(str.split)


def only_input(func: Callable, given: dict[str, Any], others: tuple[str, ...] = ()) -> Rows:
    """The Rows that an operation is about, where the rest must be none."""
    rows = given.get("input")
    if not isinstance(rows, Rows) or any(
        rows_in((value,)) for name, value in given.items() if name != "input" and name not in others
    ):
        raise refuse(func, "takes Rows as its input and nowhere else")
    return rows


def plain(value: Any) -> Any:
    """Tensors instead of Rows, which are of one table or by themselves."""
    if isinstance(value, Rows):
        return value.value
    return type(value)(map(plain, value)) if type(value) in (list, tuple) else value


def plainly(func: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What ``func`` computes of tensors in place of Rows."""
    return func(*plain(args), **{name: plain(value) for name, value in kwargs.items()})


def aligned(func: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Rows, tuple[Any, ...], dict[str, Any]]:
    """Some Rows of the table that all Rows are found in, and the arguments with tensors of that table.

    Rows must have the same number of axes, and what stands beside them must be the same for all rows.
    """
    rows = rows_in([*args, *kwargs.values()])
    like = rows[0].bag.common(rows, func)
    if len({r.ndim for r in rows}) > 1:
        counts = " and ".join(str(r.ndim) for r in rows)
        raise refuse(func, f"meets Rows of {counts} axes", "give them as many, as h[:, None] does")

    return like, tuple(_moved(func, like, v) for v in args), {name: _moved(func, like, v) for name, v in kwargs.items()}


# Not within the function above: what calls itself there is a cycle, which would keep values until Python collects garbage.
def _moved(func: Callable, like: Rows, value: Any) -> Any:
    if isinstance(value, Rows):
        return value.bag.moved(value, like.number)
    if isinstance(value, Tensor):
        return _same_for_all(func, value, like.ndim)
    if isinstance(value, RowCount):
        raise refuse(func, "meets Rows with their number, which depends on the plan")
    return type(value)(_moved(func, like, part) for part in value) if type(value) in (list, tuple) else value


def _same_for_all(func: Callable, value: Tensor, ndim: int) -> Tensor:
    """A plain tensor that is broadcast over the rows, or has been (``weight.expand(len, -1)``)."""
    if value.ndim < ndim or value.ndim == 0 or (value.ndim == ndim and value.shape[0] == 1):
        return value
    if value.ndim == ndim and value.stride(0) == 0:
        return value[:1]
    raise refuse(
        func, f"meets Rows with a plain tensor of shape {list(value.shape)}, which is not the same for all of them",
        "compute it from Rows (bag.x, bag.mark), or give it the shape [1, channels]; "
        "bag.spread brings [graphs, channels] to pairs",
    )  # fmt: skip


def made(func: Callable, rows: Rows, found: Any) -> Any:
    """What was computed, as Rows again: one or several."""
    if isinstance(found, (list, tuple)):
        return type(found)([made(func, rows, part) for part in found])  # also torch.return_types.max
    if not isinstance(found, Tensor) or found.ndim == 0 or found.shape[0] != rows.value.shape[0]:
        raise refuse(func, f"of these arguments gives {type(found).__name__} that has no row for each row")
    return rows.of(found)
