"""Rows that share memory: views, and what an operation gives back as it is.

What is written into one of them is written into all, as with tensors. Only where Rows of a later table are written (``h +=
conv(h)``) there is new memory, of which the others would not know: so Rows remember which others share theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from torch import Tensor

if TYPE_CHECKING:
    from enfa.nn.rowwise.rows import Rows

__all__ = ["MAY_SHARE", "note_sharing", "sharers"]

_MAY_SHARE = """
view reshape squeeze select narrow unflatten chunk split tensor_split unbind expand permute flatten unsqueeze transpose swapaxes
swapdims movedim moveaxis __getitem__ detach contiguous positive pos to type type_as float double half bfloat16 long int bool
cpu cuda
"""
MAY_SHARE = frozenset(_MAY_SHARE.split())


def note_sharing(source: Any, found: Any) -> None:
    """``found``, Rows or several, was made of ``source``."""
    for part in found if isinstance(found, (list, tuple)) else (found,):
        if part is not source and _memory(part) is not None and _memory(part) == _memory(source):
            group = source.sharing or [ref(source)]
            group.append(ref(part))
            source.sharing = part.sharing = group


def sharers(rows: Rows) -> list[Rows]:
    """Other Rows, still in use, that see what is written into these."""
    others = (other() for other in rows.sharing or ())
    return [other for other in others if other is not None and other is not rows and _overlap(rows, other)]


def _memory(rows: Any) -> int | None:
    value = getattr(rows, "_value", None)
    try:
        return (value.untyped_storage().data_ptr() or None) if isinstance(value, Tensor) else None
    except (RuntimeError, NotImplementedError):  # a tensor that stands for others has none
        return None


def _overlap(one: Rows, other: Rows) -> bool:
    """Columns beside each other, as those of ``h.chunk(2, 1)``, do not."""
    if _memory(one) != _memory(other):
        return False
    a, b = one._value, other._value
    if a.ndim != 2 or b.ndim != 2 or a.stride() != b.stride() or a.stride(1) != 1:
        return True
    apart = (b.storage_offset() - a.storage_offset()) % a.stride(0)
    return apart < a.shape[1] or a.stride(0) - apart < b.shape[1]
