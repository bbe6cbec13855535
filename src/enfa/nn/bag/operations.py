"""What may be done with Rows: what is known to act on each row by itself. Everything else is refused.

Each operation is listed by what it does to the first axis, that of the rows. ``torch.relu``, ``F.relu`` and ``Tensor.relu`` are
three functions; all of one name are found here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["HANDLERS", "refuse"]

Handler = Callable[[Callable, tuple[Any, ...], dict[str, Any]], Any]
HANDLERS: dict[Any, Handler] = {}

_INSTEAD = {
    "mean": "use bag.pool(h, 'mean') for a mean over nodes or subgraphs",
    "sum": "use bag.pool(h, 'sum') for a sum over nodes or subgraphs",
    "max": "use bag.pool(h, 'max')",
    "amax": "use bag.pool(h, 'max')",
    "softmax": "use bag.pool(h, 'softmax', score=...) for attention over rows, or dim=-1 for a softmax over channels",
    "cat": "join columns with dim=1; bring other rows to this table with bag.spread",
    "getitem": "take columns as h[:, a:b]; bag.root and bag.diagonal pick rows",
}


def _name_of(func: Any) -> str:
    return func if isinstance(func, str) else getattr(func, "__name__", str(func)).strip("_")


def refuse(func: Any, why: str = "is not known to act on each row by itself") -> TypeError:
    """The error for what is refused."""
    name = _name_of(func)
    more = _INSTEAD.get(name, "pool first (bag.pool), or pass messages (bag.propagate)")
    return TypeError(
        f"{name} {why}, and a row stands for many (subgraph, node) pairs, so plans would give different results: {more}"
    )


def _all_named(*names: str) -> list[Any]:
    """The functions of these names in torch, torch.nn.functional and torch.Tensor, operators included."""
    found = []
    for name in names:
        for place in (torch, F, Tensor):
            for spelling in (name, f"__{name}__", f"__r{name}__"):
                func = getattr(place, spelling, None)
                if callable(func):
                    found.append(func)
    return found


def allow(*names: str) -> Callable[[Handler], Handler]:
    def note(handler: Handler) -> Handler:
        for func in _all_named(*names):
            HANDLERS[func] = handler
        return handler

    return note


def _rows_in(values: Any) -> list[Any]:
    """All Rows among arguments, also in lists."""
    from enfa.nn.bag.rows import Rows

    found = []
    for value in values:
        if isinstance(value, Rows):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _rows_in(value)
    return found


def _aligned(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...], dict[str, Any], list[Tensor]]:
    """The arguments with tensors instead of Rows, all of one table; some Rows of that table, and those tensors."""
    from enfa.nn.bag.rows import Rows

    rows = _rows_in([*args, *kwargs.values()])
    common, held = rows[0].bag.common(rows, func), []

    def plain(value: Any) -> Any:
        if isinstance(value, Rows):
            held.append(value.bag.moved(value, common.number))
            return held[-1]
        if isinstance(value, (list, tuple)):
            return type(value)(plain(v) for v in value)
        return value

    return common, tuple(plain(a) for a in args), {k: plain(v) for k, v in kwargs.items()}, held


def _check_plain(func: Any, count: int, ndim: int, values: Any) -> None:
    """Beside Rows, a tensor must be the same for all of them."""
    for value in values:
        if isinstance(value, Tensor) and value.ndim and value.ndim >= ndim and value.shape[value.ndim - ndim] != 1:
            raise refuse(
                func, f"meets {count} Rows with a plain tensor of shape {list(value.shape)}, which is not the same for all of them"
            )


@allow(
    "relu", "relu6", "gelu", "silu", "elu", "selu", "celu", "leaky_relu", "prelu", "softplus", "softsign", "mish", "hardtanh",
    "hardswish", "hardsigmoid", "logsigmoid", "tanhshrink", "threshold", "sigmoid", "tanh", "exp", "expm1", "log", "log1p",
    "log2", "sin", "cos", "tan", "atan", "sinh", "cosh", "erf", "abs", "neg", "negative", "positive", "sqrt", "rsqrt", "square",
    "reciprocal", "sign", "floor", "ceil", "round", "trunc", "clamp", "clamp_min", "clamp_max", "clip", "nan_to_num", "isnan",
    "isinf", "isfinite", "logical_not", "invert", "float", "double", "half", "bfloat16", "long", "int", "bool", "detach",
    "clone", "contiguous", "zeros_like", "ones_like", "type_as", "add", "sub", "subtract", "rsub", "mul", "multiply", "div", "divide",
    "true_divide", "truediv", "pow", "maximum", "minimum", "where", "lerp", "eq", "ne", "lt", "le", "gt", "ge", "logical_and",
    "logical_or", "logical_xor", "and", "or", "xor", "fmod", "remainder", "mod", "floordiv", "floor_divide", "addcmul",
    "addcdiv", "atan2", "masked_fill",
)  # fmt: skip
def elementwise(func: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Each number by itself; other tensors must be the same for all rows."""
    if kwargs.get("out") is not None:
        raise refuse(func, "with out= writes into a tensor")
    like, args, kwargs, held = _aligned(func, args, kwargs)
    others = [v for v in (*args, *kwargs.values()) if not any(v is h for h in held)]
    if len({h.ndim for h in held}) > 1:
        raise refuse(func, f"meets Rows of {' and '.join(str(h.ndim) for h in held)} axes")
    _check_plain(func, len(like), held[0].ndim, others)
    return like.of(func(*args, **kwargs))


@allow("to", "type")
def converted(func: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0].of(func(args[0].value, *args[1:], **kwargs))


@allow("linear", "matmul", "mm")
def product(func: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Rows times a matrix."""
    left, *rest = args
    if _rows_in(rest) or _rows_in(kwargs.values()) or not _rows_in([left]):
        raise refuse(func, "has Rows as its matrix")
    weight = rest[0] if rest else kwargs.get("weight", kwargs.get("other", kwargs.get("mat2")))
    if left.ndim < 2 or (isinstance(weight, Tensor) and weight.ndim != 2 and _name_of(func) != "linear"):
        raise refuse(func, f"multiplies Rows {list(left.shape)} by a tensor that is no matrix")
    return left.of(func(left.value, *rest, **kwargs))


HANDLERS[Tensor.__matmul__] = product
for _refused in (Tensor.__rmatmul__,):
    HANDLERS.pop(_refused, None)


def _axis(rows: Any, dim: int) -> int:
    return dim if dim >= 0 else dim + rows.ndim


def _argument(args: tuple[Any, ...], kwargs: dict[str, Any], place: int, *names: str, default: Any = None) -> Any:
    for name in names:
        if name in kwargs:
            return kwargs[name]
    return args[place] if len(args) > place else default


@allow(
    "sum", "mean", "amax", "amin", "max", "min", "prod", "logsumexp", "norm", "var", "std", "softmax", "log_softmax",
    "normalize", "argmax", "argmin", "cumsum", "flip", "sort", "glu", "chunk", "split", "tensor_split", "unflatten", "unsqueeze", "squeeze",
    "select", "narrow", "any", "all", "softmin", "roll",
)  # fmt: skip
def over_channels(func: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Along other axes than that of the rows, which must be named."""
    rows, name = args[0], _name_of(func)
    if _rows_in([*args[1:], *kwargs.values()]):
        return elementwise(func, args, kwargs) if name in ("max", "min") else _no(func)
    where = {"norm": 2, "normalize": 2, "chunk": 2, "split": 2, "tensor_split": 2, "roll": 2, "flip": 1}.get(name, 1)
    default = {"normalize": 1, "glu": -1}.get(name)
    dims = _argument(args, kwargs, where, "dim", "axis", "dims", default=default)
    dims = dims if isinstance(dims, (list, tuple)) else [dims]
    if any(d is None or _axis(rows, d) <= 0 for d in dims) or not dims:
        raise refuse(func, "without dim, or along dimension 0, mixes rows")
    found = func(rows.value, *args[1:], **kwargs)
    if isinstance(found, Tensor):
        return rows.of(found)
    return type(found)(rows.of(t) for t in found) if type(found) in (list, tuple) else tuple(rows.of(t) for t in found)


def _no(func: Callable) -> Any:
    raise refuse(func)


@allow("reshape", "view", "flatten", "transpose", "swapaxes", "permute", "movedim", "expand")
def reshaped(func: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Rows stay rows: the first axis is as it was, in the same order."""
    rows, name = args[0], _name_of(func)
    numbers = [a for a in (*args[1:], *kwargs.values()) if not isinstance(a, torch.dtype)]
    flat = [n for a in numbers for n in (a if isinstance(a, (list, tuple, torch.Size)) else [a])]
    if name in ("transpose", "swapaxes", "movedim"):
        kept = all(_axis(rows, d) > 0 for d in flat)
    elif name == "permute":
        kept = _axis(rows, flat[0]) == 0
    elif name == "flatten":
        kept = bool(flat) and _axis(rows, kwargs.get("start_dim", flat[0])) > 0
    else:
        kept = bool(flat) and flat[0] in (-1, len(rows))
        flat_rest = [n for n in flat[1:] if n != -1]
        if kept and flat[0] == -1 and name != "expand":
            size = 1
            for n in flat_rest:
                size *= n
            kept = size * len(rows) == rows.value.numel() or len(rows) == 0
    if not kept:
        raise refuse(func, "changes the axis of the rows")
    if name == "view":
        func = Tensor.reshape
    return rows.of(func(rows.value, *args[1:], **kwargs))


@allow("cat", "concat", "concatenate", "stack", "hstack")
def beside(func: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Columns beside columns."""
    parts, name = args[0] if args else kwargs["tensors"], _name_of(func)
    dim = 1 if name == "hstack" else _argument(args, kwargs, 1, "dim", "axis", default=0)
    if len(_rows_in(parts)) != len(parts):
        raise refuse("cat", "of Rows and plain tensors needs as many rows of both")
    if _axis(parts[0], dim) + (dim < 0 and name == "stack") <= 0:
        raise refuse("cat", "along dimension 0 makes rows that belong to no table")
    like, args, kwargs, _ = _aligned(func, args, kwargs)
    return like.of(func(*args, **kwargs))


@allow("getitem")
def columns(func: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    rows, index = args
    index = index if isinstance(index, tuple) else (index,)
    if not index or not isinstance(index[0], slice) or index[0] != slice(None) or _rows_in(index):
        raise refuse(func, "picks rows")
    if any(isinstance(i, Tensor) and i.ndim > 1 for i in index[1:]):
        raise refuse(func, "with a matrix of numbers")
    return rows.of(rows.value[index])


@allow("layer_norm", "rms_norm", "group_norm", "local_response_norm")
def normed_alone(func: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Each row by itself."""
    rows, shape = args[0], _argument(args, kwargs, 1, "normalized_shape")
    if _name_of(func) in ("layer_norm", "rms_norm") and len(shape) >= rows.ndim:
        raise refuse(func, "over all axes mixes rows")
    return rows.of(func(rows.value, *args[1:], **kwargs))


@allow("embedding", "one_hot")
def looked_up(func: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Categorical columns."""
    rows = args[0]
    if _name_of(func) == "one_hot" and _argument(args, kwargs, 1, "num_classes", default=-1) < 0:
        raise refuse(func, "without num_classes counts what all rows have")
    if len(_rows_in([*args, *kwargs.values()])) != 1 or not _rows_in([rows]):
        raise refuse(func)
    return rows.of(func(rows.value, *args[1:], **kwargs))


@allow("batch_norm")
def batch_norm(func: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from enfa.nn.bag.exact import counted_batch_norm

    return counted_batch_norm(*args, **kwargs)


@allow("dropout", "dropout_", "feature_dropout")
def dropout(func: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from enfa.nn.bag.exact import keyed_dropout

    if _name_of(func) != "dropout":
        raise refuse(func)
    return keyed_dropout(*args, **kwargs)
