"""What computes along axes, or changes them. The first is that of the rows and stays as it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torch import Tensor

from enfa.nn.rowwise.arguments import aligned, bound, made, named, only_input, plain, plainly, rows_in
from enfa.nn.rowwise.elementwise import PARTIAL, elementwise
from enfa.nn.rowwise.held import HeldColumns, held_back
from enfa.nn.rowwise.refusal import refuse
from enfa.nn.rowwise.rows import RowCount, Rows

__all__ = ["AXES", "REDUCTIONS", "reduced_axes"]


def _each(listed: dict[str, tuple[str, Any]]) -> dict[str, tuple[str, Any]]:
    return {name: entry for names, entry in listed.items() for name in names.split()}


# Parameters up to the axis, and the axis where none is given; None: all of them.
REDUCTIONS = _each({
    """sum nansum mean nanmean amax amin max min prod logsumexp var std var_mean std_mean any all argmax argmin softmax
    log_softmax softmin cumsum cumprod logcumsumexp count_nonzero""": ("input dim", None),
    "norm vector_norm": ("input p dim", None), "normalize": ("input p dim", 1), "sort argsort": ("input dim descending", -1),
})  # fmt: skip
_ALONG = REDUCTIONS | _each({
    "squeeze select narrow unflatten index_select": ("input dim", None), "chunk split tensor_split": ("input parts dim", 0),
    "roll": ("input shifts dim", None), "repeat_interleave": ("input repeats dim", None), "flip": ("input *dim", None),
    "unbind": ("input dim", 0), "glu": ("input dim", -1),
})  # fmt: skip


def channel_axes(func: Any, dims: Any, ndim: int) -> None:
    """Refuse what goes along the rows. A bool is no axis: ``h.var(True)`` is a variance over everything."""
    listed = dims if isinstance(dims, (list, tuple)) else [dims]
    if not listed or any(type(d) is not int or (d if d >= 0 else d + ndim) <= 0 for d in listed):
        raise refuse(func, f"along {'all axes' if dims is None else f'dim={dims}'} mixes rows")


def reduced_axes(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """What an operation along axes is about, and the axes."""
    names, default = _ALONG[name]
    given = bound(names, args, kwargs)
    return given.get("input"), given.get("dim", default)


def along(func: Callable, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = bound(_ALONG[name][0], args, kwargs)
    if name in ("max", "min") and isinstance(given.get("other", given.get("dim")), (Tensor, Rows)):
        return elementwise(func, name, args, kwargs)
    rows = only_input(func, given)
    dim = given.get("dim", _ALONG[name][1])
    channel_axes(func, dim, rows.ndim)
    if name in ("sort", "argsort"):  # unstable ones may treat equal numbers differently in a longer table
        found = func(rows.value, dim=dim, descending=given.get("descending", False), stable=True)
    elif name in PARTIAL:
        found = func(rows.bag.unpadded(rows.value, rows.number), *plain(args[1:]), **kwargs)
    else:
        found = plainly(func, args, kwargs)
    return made(func, rows, found)


def _as_many(count: Any, rows: Rows) -> bool:
    """Whether it is the number of rows of a table that has as many in the conventional model, whatever it has here."""
    if not isinstance(count, RowCount) or count.table[0] != id(rows.bag):
        return False
    number, steps = count.table[1], rows.bag.program.steps
    return number >= 0 and rows.number >= 0 and steps[number].kind == rows.kind


def reshaped(func: Callable, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """In row-major order each row stays by itself if there are as many rows as before."""
    given = bound("input *shape", args, kwargs)
    rows = only_input(func, given)
    shape, was = list(given.get("shape", ())), rows.value.shape
    if not shape or any(not isinstance(n, int) for n in shape):
        raise refuse(func, f"to {shape} is no shape of Rows")
    first = was[0] if _as_many(shape[0], rows) else shape[0]
    # plain numbers, instead of the number of rows, which refuses to be compared
    shape = [int.__index__(n) for n in (first, *shape[1:])]
    if shape[0] == -1 and math.prod(shape[1:]) == math.prod(was[1:]):
        shape[0] = was[0]
    if shape[0] != was[0]:
        raise refuse(func, f"to {shape} changes the axis of the rows", "keep it: h.view(-1, heads, channels)")
    return rows.of(rows.value.reshape(shape))


def repeated(func: Callable, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """expand(-1, k), repeat(1, k): new axes would stand before that of the rows."""
    given = bound("input *shape", args, kwargs)
    rows = only_input(func, given)
    shape = [int.__index__(n) if isinstance(n, int) else n for n in given.get("shape", given.get("repeats", ()))]
    kept = (-1, rows.value.shape[0]) if name == "expand" else (1,)
    if len(shape) != rows.ndim or shape[0] not in kept:
        raise refuse(func, f"to {shape} repeats rows", "give -1 (expand) or 1 (repeat) for the axis of the rows")
    return made(func, rows, func(*plain(args), **kwargs))


def reordered(func: Callable, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    names = {"permute": "input *dim", "flatten": "input start_dim end_dim", "unsqueeze": "input dim"}
    swap = "input source destination" if name in ("movedim", "moveaxis") else "input dim0 dim1"
    given = bound(names.get(name, swap), args, kwargs)
    rows = only_input(func, given)
    if name == "permute":
        if given["dim"][0] not in (0, -rows.ndim):
            raise refuse(func, "moves the axis of the rows")
    elif name == "flatten":
        channel_axes(func, given.get("start_dim", 0), rows.ndim)
    elif name == "unsqueeze":
        channel_axes(func, given.get("dim"), rows.ndim + 1)
    else:
        for key in names.get(name, swap).split()[1:]:
            channel_axes(func, given.get(key), rows.ndim)
    return made(func, rows, plainly(func, args, kwargs))


def beside(func: Callable, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Columns beside columns. Plain parts [1, channels] are repeated for all rows."""
    given = bound("tensors dim", args, kwargs)
    parts = given["tensors"]
    ndim = rows_in(parts)[0].ndim + (name == "stack")
    channel_axes(func, given.get("dim", 1 if name == "hstack" else 0), ndim)
    if name == "hstack" and ndim < 2:
        raise refuse(func, "of Rows with one axis mixes rows")
    if name != "stack" and ndim == 2 and given.get("dim", 1) in (1, -1) and HeldColumns.holds(parts):
        found = parts[0].bag.common(parts, func)
        return held_back(HeldColumns(parts, found.number), found)
    like, (parts,), _ = aligned(func, (list(parts),), {})
    count = like.value.shape[0]
    if any(part.ndim != rows_in(given["tensors"])[0].ndim for part in parts):
        raise refuse(func, "meets Rows with a plain tensor of fewer axes", "give it the shape [1, channels]")
    parts = [part if part.shape[0] == count else part.expand(count, *part.shape[1:]) for part in parts]
    rest = (given["dim"],) if "dim" in given and name != "hstack" else ()
    return made(func, like, func(parts, *rest))


def columns(func: Callable, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """h[:, ...] and h[..., i]. Two lists of numbers with a slice between them would put their axis first."""
    rows, index = args
    index = index if isinstance(index, tuple) else (index,)
    if not isinstance(rows, Rows) or rows_in(index):
        raise refuse(func, "by Rows picks rows")
    first, taken = index[0] if index else None, [i for i in index if i is not None and i is not Ellipsis]
    whole = first is Ellipsis and len(taken) < rows.ndim
    if not whole and not (isinstance(first, slice) and first == slice(None)):
        raise refuse(func, "picks rows")
    if sum(not isinstance(i, (int, slice)) for i in taken) > 1:
        raise refuse(func, "by several lists of numbers may move the axis of the rows", "take one after the other")
    return made(func, rows, rows.value[index])


def gathered(func: Callable, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Of each row the columns that it names itself."""
    given = bound("input dim index", args, kwargs)
    if not isinstance(given.get("input"), Rows) or not isinstance(given.get("index"), Rows):
        raise refuse(func, "takes numbers that are no Rows")
    channel_axes(func, given.get("dim"), given["input"].ndim)
    return elementwise(func, name, args, kwargs)


def compared(func: Callable, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Two rows: a number of both."""
    given = bound("x1 x2 dim" if name == "cosine_similarity" else "x1 x2 p", args, kwargs)
    ndim = rows_in(given.values())[0].ndim
    channel_axes(func, given.get("dim", 1) if name == "cosine_similarity" else -1, ndim)
    if any(isinstance(value, Tensor) and value.ndim != ndim for value in given.values()):
        raise refuse(func, "meets Rows with a tensor of other axes", "give it the shape [1, channels]")
    return elementwise(func, name, args, kwargs)


def padded(func: Callable, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = bound("input pad", args, kwargs)
    rows = only_input(func, given)
    if len(given["pad"]) > 2 * (rows.ndim - 1):
        raise refuse(func, "adds rows that belong to no table")
    return made(func, rows, plainly(func, args, kwargs))


AXES = {
    **named(along, " ".join(_ALONG)), **named(reshaped, "reshape view"), **named(repeated, "expand repeat"),
    **named(reordered, "permute flatten unsqueeze transpose swapaxes swapdims movedim moveaxis"),
    **named(beside, "cat concat concatenate stack hstack"), **named(gathered, "gather"),
    **named(compared, "cosine_similarity pairwise_distance"), **named(padded, "pad"),
    **named(columns, "__getitem__"),
}  # fmt: skip
