"""What computes each number by itself. Plain tensors beside Rows must be the same for all rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from enfa.nn.rowwise.arguments import aligned, bound, made, named, plain, plainly, rows_in
from enfa.nn.rowwise.fused import HeldSum
from enfa.nn.rowwise.held import held_back, holds, settle
from enfa.nn.rowwise.layer_end import HeldJoin
from enfa.nn.rowwise.refusal import refuse
from enfa.nn.rowwise.rows import Rows
from enfa.nn.rowwise.sharing import sharers

__all__ = ["ELEMENTWISE", "elementwise"]

_ONE = """
 relu relu6 gelu silu elu selu celu leaky_relu prelu softplus softsign mish hardtanh hardswish hardsigmoid logsigmoid
tanhshrink hardshrink softshrink threshold sigmoid expit logit tanh exp exp2 expm1 log log1p log2 log10 sin cos tan asin
acos atan arctan sinh cosh asinh acosh atanh erf erfc erfinv sinc lgamma digamma abs absolute neg negative positive sqrt
rsqrt square reciprocal sign sgn floor ceil round trunc frac clamp clamp_min clamp_max clip nan_to_num isnan isinf
isfinite logical_not bitwise_not detach clone contiguous zeros_like ones_like full_like
"""
_SEVERAL = """
 add sub subtract rsub mul multiply div divide true_divide floor_divide pow float_power maximum minimum fmax fmin where
lerp eq ne lt le gt ge not_equal less less_equal greater greater_equal logical_and logical_or logical_xor bitwise_and
bitwise_or bitwise_xor fmod remainder addcmul addcdiv atan2 arctan2 hypot copysign xlogy logaddexp logaddexp2 isclose
masked_fill
"""
# Not defined, or without a derivative, for some numbers: padding must not meet them where no real row does.
_PARTIAL = """
log log2 log10 log1p sqrt rsqrt reciprocal div divide true_divide truediv rtruediv floor_divide floordiv rfloordiv pow rpow
float_power logit acos asin acosh atanh erfinv lgamma digamma xlogy atan2 arctan2 hypot fmod remainder mod rmod addcdiv
copysign logaddexp logaddexp2 std std_mean
"""
PARTIAL = frozenset(_PARTIAL.split())
_OPERATORS = """
 add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow eq ne lt le gt ge and rand or ror xor
rxor neg pos abs invert
"""
_IN_PLACE = """
 relu elu selu celu leaky_relu hardtanh threshold sigmoid tanh exp log sqrt rsqrt square reciprocal abs neg sin cos floor
ceil round clamp clamp_min clamp_max clip nan_to_num add sub mul div pow fmod remainder lerp addcmul addcdiv masked_fill
zero fill
"""
_TO = "to type type_as float double half bfloat16 long int bool cpu cuda"


def elementwise(func: Callable, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if name == "where" and len(args) + len(kwargs) < 3:
        raise refuse(func, "with a condition alone gives numbers of rows", "write torch.where(condition, a, b)")
    if kwargs.get("inplace") or any(arg is True for arg in args):  # nn.ELU calls elu(h, alpha, True)
        settle()
    target = args[0] if args else kwargs.get("input")
    of_rows = [isinstance(arg, Rows) for arg in args]
    like, args, kwargs = aligned(func, args, kwargs)
    if name in PARTIAL:
        args = tuple(like.bag.unpadded(arg, like.number) if rows else arg for arg, rows in zip(args, of_rows))
    found = func(*args, **kwargs)
    if isinstance(target, Rows) and found is target._value and target.number == like.number:
        return target  # F.relu(h, inplace=True) is h, and so is h.contiguous()
    return made(func, like, found)


def added(func: Callable, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Rows, and a linear's result or rows behind a norm that are held back: their kernel adds them up."""
    given = bound("input other", args, kwargs)
    one, other = given.get("input"), given.get("other")
    if len(args) + len(kwargs) == 2 and isinstance(one, Rows) and isinstance(other, Rows) and holds(one):
        held = HeldSum.of(one, other) or HeldJoin.of(one, other)
        if held is not None:
            return held_back(held, Rows(None, one.bag, held.number))  # type: ignore[arg-type]
    return elementwise(func, name, args, kwargs)


def relu(func: Callable, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Together with the linear or norm before it, where that is held back."""
    if len(args) == 1 and len(kwargs) == ("inplace" in kwargs):  # as h.relu() and nn.ReLU call it
        rows, inplace = args[0], kwargs.get("inplace")
    else:
        given = bound("input inplace", args, kwargs)
        rows, inplace = given.get("input"), given.get("inplace")
    if not isinstance(rows, Rows) or rows.held is None or rows.activated or not holds(rows):
        return elementwise(func, name, args, kwargs)
    if not rows.held.as_now():
        return elementwise(func, name, args, kwargs)
    if not inplace:
        return held_back(rows.held, rows, relu=True)
    settle(lambda held: any(read is rows for read in held.reads))
    if rows.held is None:  # one of those has asked for its values
        return elementwise(func, name, args, kwargs)
    rows.activated = True
    return rows


def in_place(func: Callable, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Rows:
    """Writes into the tensor. Rows that meet those of a later table (``h += conv(h)``) become rows of that one."""
    target = bound("input", args, kwargs).get("input")
    if not isinstance(target, Rows):
        raise refuse(func, "writes Rows into a plain tensor", "write h + tensor, which makes new Rows")
    settle()
    later = target.bag.common([target, *rows_in((*args, *kwargs.values()))], func).number != target.number
    if later and sharers(target):
        raise refuse(func, "makes new rows of Rows whose memory others share", "write h + other, which leaves them as they are")
    if later:
        target.value = target.value.clone()  # where tables are numbered alike, nothing else makes a copy
    before = target.value
    found = elementwise(func, name, args, kwargs)
    value, number = found.value, found.number
    if not later and value is not before and sharers(target):  # of padded rows a copy was written
        value = before.copy_(value)
    target.value, target.number = value, number
    return target


def converted(func: Callable, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    rows = args[0] if args else None
    if not isinstance(rows, Rows):
        return func(*plain(args), **kwargs)  # tensor.to(rows), as for tensors
    found = plainly(func, args, kwargs)
    if found is rows._value:
        return rows
    return found if isinstance(found, str) else made(func, rows, found)


ELEMENTWISE = {
    **named(elementwise, _ONE + _SEVERAL), **named(elementwise, _OPERATORS, "__{}__"), **named(in_place, _IN_PLACE, "{}_"),
    **named(in_place, "add sub mul truediv floordiv mod pow", "__i{}__"), **named(converted, _TO),
    **named(relu, "relu"), **named(added, "add"), **named(added, "add radd", "__{}__"),
}  # fmt: skip
