"""A plan as one block of bytes: one transfer instead of a hundred, into memory that never moves."""

import math
from collections.abc import Iterator, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from enfa.plan.arrays import Arrays

__all__ = ["Layout", "layout_of", "pack", "places", "unpack", "views", "write_all"]

T = TypeVar("T", bound=Arrays)
_ALIGNED = 256  # bytes; kernels read 16 at a time
Layout = tuple[tuple[torch.dtype, tuple[int, ...]], ...]


def layout_of(plan: T) -> Layout:
    """Types and shapes of all arrays. Plans with equal layouts run through the same captured step."""
    return tuple((t.dtype, tuple(t.shape)) for t in plan.tensors())


def places(layout: Layout) -> tuple[list[tuple[int, int]], int]:
    """First byte and number of bytes of every array, and the bytes of all."""
    found, at = [], 0
    for dtype, shape in layout:
        size = math.prod(shape) * dtype.itemsize
        found.append((at, size))
        at += -(-size // _ALIGNED) * _ALIGNED
    return found, at


def pack(plan: T, out: Tensor | None = None) -> Tensor:
    """uint8 [bytes]: all arrays of a plan on the CPU, one behind the other; into ``out`` where it is given."""
    tensors = plan.tensors()
    for name in ("x_rows", "edge_rows"):  # bytes have no gradient
        if getattr(plan, name, None) is not None and getattr(plan, name).requires_grad:
            raise ValueError(f"Expected a plan without gradients to pack, got '{name}' with requires_grad=True")
    at_of, total = places(layout_of(plan))
    out = torch.empty(total, dtype=torch.uint8) if out is None else out[:total]
    write_all(tensors, at_of, out)
    return out


def write_all(tensors: Sequence[Tensor], at_of: Sequence[tuple[int, int]], out: Tensor) -> None:
    """The bytes of some arrays, each in its place."""
    for tensor, (at, size) in zip(tensors, at_of):
        if size:
            out[at : at + size] = tensor.contiguous().reshape(-1).view(torch.uint8)


def views(block: Tensor, layout: Layout) -> Iterator[Tensor]:
    """The arrays that were written into a block, as parts of it."""
    for (dtype, shape), (at, size) in zip(layout, places(layout)[0]):
        yield block[at : at + size].view(dtype).reshape(shape)


def unpack(block: Tensor, plan: T) -> T:
    """A plan like ``plan`` whose arrays are parts of ``block``, on whatever device that is."""
    found = views(block, layout_of(plan))
    return plan.map(lambda t: t if t.is_meta else next(found))
