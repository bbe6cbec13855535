"""Rows with weights: products, lookups, and norms of each row by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from enfa.nn.rowwise.arguments import aligned, bound, made, named, only_input, plainly, rows_in
from enfa.nn.rowwise.elementwise import elementwise
from enfa.nn.rowwise.fused import HeldLinear
from enfa.nn.rowwise.held import held_back, holds
from enfa.nn.rowwise.refusal import refuse
from enfa.nn.rowwise.rows import Rows

__all__ = ["PRODUCTS"]


def linear(func: Callable, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) == 3 and not kwargs and type(args[0]) is Rows:  # as nn.Linear calls it
        rows, weight, bias = args
        if rows.number >= 0 and rows.ndim == 2 and _fits(rows, weight, bias) and holds(rows):
            return held_back(HeldLinear(rows, weight, bias), rows)
    given = bound("input weight bias", args, kwargs)
    rows = only_input(func, given)
    if rows.ndim < 2:
        raise refuse(func, "takes a single axis for channels", "write h[:, None] for one channel")
    bias = given.get("bias")
    if bias is not None and bias.ndim > 1 and bias.shape[0] != 1:
        raise refuse(func, f"meets Rows with a bias of shape {list(bias.shape)}", "give it the shape [channels]")
    if rows.ndim == 2 and rows.number >= 0 and holds(rows) and _fits(rows, given["weight"], bias):
        return held_back(HeldLinear(rows, given["weight"], bias), rows)
    return made(func, rows, plainly(func, args, kwargs))


def _fits(rows: Rows, weight: Tensor, bias: Tensor | None) -> bool:
    """Whether PyTorch computes it: what it refuses is refused at once."""
    if not isinstance(weight, Tensor) or weight.ndim != 2 or weight.shape[1] != rows.width:
        return False
    dtype, device = rows.dtype, rows.device
    if torch.is_autocast_enabled(device.type):
        if dtype not in (torch.float32, torch.bfloat16):
            return False
        dtype = torch.float32  # of weights; what comes out is bfloat16
    if weight.dtype != dtype or weight.device != device:
        return False
    if bias is None:
        return True
    return isinstance(bias, Tensor) and bias.shape == weight.shape[:1] and bias.dtype == dtype and bias.device == device


def product(func: Callable, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Rows times a matrix or vector; of Rows of matrices each with its own."""
    given = bound("input other", args, kwargs)
    left, right = given.get("input"), given.get("other")
    if not isinstance(left, Rows) or left.ndim < 2 or (isinstance(right, Rows) and right.ndim < 3):
        raise refuse(func, "multiplies rows with each other")
    return elementwise(func, name, args, kwargs) if left.ndim > 2 else _by_matrix(func, left, right)


def _by_matrix(func: Callable, left: Rows, right: Any) -> Any:
    if not isinstance(right, Tensor) or right.ndim > 2:
        raise refuse(func, f"multiplies Rows {list(left.value.shape)} by {right!r:.60}, which is no matrix")
    return made(func, left, func(left.value, right))


def einsum(func: Callable, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The axis of the rows must be the first of all Rows and of the result, and stand nowhere else."""
    equation, *operands = args
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = list(operands[0])
    if not isinstance(equation, str) or "->" not in equation or "." in equation:
        raise refuse(func, "without '->', or with '...', does not say what becomes of the rows", "write all axes: 'nc,cd->nd'")
    ins, out = equation.replace(" ", "").split("->")
    terms = ins.split(",")
    first = {term[:1] for term, value in zip(terms, operands) if isinstance(value, Rows)}
    axis = next(iter(first))
    placed = all(term.count(axis) == isinstance(value, Rows) for term, value in zip(terms, operands))
    if len(first) > 1 or not placed or out[:1] != axis or out.count(axis) != 1:
        raise refuse(func, f"{equation!r} mixes rows", "let their axis be the first of all Rows and of the result: 'nc,cd->nd'")
    rows = rows_in(operands)
    like = rows[0].bag.common(rows, func)
    return made(func, like, func(equation, *(v.bag.moved(v, like.number) if isinstance(v, Rows) else v for v in operands)))


def bilinear(func: Callable, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = bound("input1 input2 weight bias", args, kwargs)
    pair = (given.get("input1"), given.get("input2"))
    if not all(isinstance(r, Rows) and r.ndim > 1 for r in pair) or rows_in([given.get("weight"), given.get("bias")]):
        raise refuse(func, "takes Rows [rows, channels] as both inputs, and nowhere else")
    like, both, _ = aligned(func, pair, {})
    return made(func, like, func(*both, given["weight"], given.get("bias")))


def looked_up(func: Callable, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Categorical columns. F.embedding_bag adds up those of each row."""
    frequency = "input weight padding_idx max_norm norm_type scale_grad_by_freq"
    names = {"embedding": frequency, "embedding_bag": "input weight offsets max_norm norm_type scale_grad_by_freq"}
    given = bound(names.get(name, "input num_classes"), args, kwargs)
    rows = only_input(func, given, ("per_sample_weights",))
    if name == "one_hot" and given.get("num_classes", -1) < 0:
        raise refuse(func, "without num_classes counts what all rows have", "give num_classes")
    if given.get("scale_grad_by_freq"):
        raise refuse(func, "with scale_grad_by_freq=True counts rows", "leave it out")
    if rows.number >= 0 and (given.get("max_norm") is not None or given.get("sparse")):
        rows.bag.note_counts(True)  # which rows there are decides on what is shortened, and what an optimiser looks at
    if name == "embedding_bag" and (rows.ndim != 2 or given.get("offsets") is not None):
        raise refuse(func, "with offsets, or of one axis, adds rows up", "give Rows [rows, columns]")
    if not isinstance(given.get("per_sample_weights"), (Rows, type(None))):
        raise refuse(func, "with weights that are no Rows")
    like, args, kwargs = aligned(func, (rows,), {k: v for k, v in given.items() if isinstance(v, Rows) and k != "input"})
    rest = {key: value for key, value in given.items() if not isinstance(value, Rows)}
    return made(func, like, func(*args, **kwargs, **rest))


def normed_alone(func: Callable, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = bound("input normalized_shape", args, kwargs)
    rows = only_input(func, given)
    shape: Any = given.get("normalized_shape")
    if rows.ndim < 2 or (name in ("layer_norm", "rms_norm") and len(shape) >= rows.ndim):
        raise refuse(func, "over all axes mixes rows", "leave out the axis of the rows")
    return made(func, rows, plainly(func, args, kwargs))


PRODUCTS = {
    F.linear: (linear, "linear"), **named(product, "matmul mm mv bmm __matmul__"), torch.einsum: (einsum, "einsum"),
    **named(bilinear, "bilinear"), **named(looked_up, "one_hot"), F.embedding: (looked_up, "embedding"),
    F.embedding_bag: (looked_up, "embedding_bag"),
    **named(normed_alone, "layer_norm rms_norm group_norm local_response_norm"),
}  # fmt: skip
