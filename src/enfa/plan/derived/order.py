"""Sums over lists of rows in both orders: what each sum reads, and, for gradients, which sums read each row.

Both orders are made once, on the CPU, so that no device ever sorts and no kernel ever adds atomically. Numbers are
int32, which is what kernels read fastest: a plan has fewer than 2^31 rows and messages.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from enfa.plan.arrays import Arrays
from enfa.plan.derived._order import split_long, spread, transpose

__all__ = ["CHUNK", "Lists", "SparseMap", "by_value", "each_once", "sparse_map"]

CHUNK = 32  # a list longer than this is summed in pieces, so that a row with very many readers delays nothing


@dataclass(eq=False)
class Lists(Arrays):
    """List n has entries ``ptr[n]:ptr[n+1]``.

    Lists of more than CHUNK entries go on in ``extra``, pieces of at most CHUNK entries each, whose sums a second pass
    adds up: list ``long[0, i]`` has pieces ``long[1, i]`` to ``long[2, i]``.
    """

    ptr: Tensor  # int32 [n+1]
    index: Tensor  # int32 [k]
    weight: Tensor | None  # int32 or int8 [k]
    other: Tensor | None  # int32 [k]: the kind of edge, or -1; in lists by kind, the row that the message comes from
    extra: Tensor  # int32 [3, pieces]: begin, end, list
    long: Tensor  # int32 [3, long lists]

    def __len__(self) -> int:
        return self.ptr.shape[0] - 1  # of a tensor, len costs microseconds


@dataclass(eq=False)
class SparseMap(Arrays):
    """A sparse matrix: ``forward`` has a list per sum, ``backward`` a list per row of the table that is summed."""

    forward: Lists
    backward: Lists


def _int32(tensor: Tensor) -> Tensor:
    return tensor.to(torch.int32)


def _pieces(ptr: Tensor, total: int) -> tuple[Tensor, Tensor]:
    room = np.empty((2, 3, total // CHUNK), np.int32)  # a piece behind the first of a list means CHUNK entries before it
    pieces, lists = split_long(ptr.numpy(), CHUNK, CHUNK, *room)
    return torch.from_numpy(room[0, :, :pieces].copy()), torch.from_numpy(room[1, :, :lists].copy())


def by_value(ptr: Tensor | None, index: Tensor, size: int, weight: Tensor | None = None, other: Tensor | None = None) -> Lists:
    """For each value of ``index`` from 0 to ``size - 1`` the lists that hold it. Without ``ptr`` every entry is a list."""
    if ptr is None:
        of = np.arange(len(index), dtype=np.int32)
    else:
        of = np.empty(len(index) + 8, np.int32)
        spread(ptr.numpy(), of)
    held = [None if t is None else t.numpy() for t in (weight, other)]
    new_ptr, new_index = np.zeros(size + 1, np.int32), np.empty(len(index), np.int32)
    new = [None if values is None else np.empty(len(index), values.dtype) for values in held]
    transpose(of, index.numpy(), *held, new_ptr, new_index, *new)
    w, o = (None if values is None else torch.from_numpy(values) for values in new)
    found = torch.from_numpy(new_ptr)
    return Lists(found, torch.from_numpy(new_index), w, o, *_pieces(found, len(index)))


def each_once(size: int) -> Lists:
    """``by_value`` of the numbers from 0 to ``size - 1``."""
    ptr, none = torch.arange(size + 1, dtype=torch.int32), torch.empty(3, 0, dtype=torch.int32)
    return Lists(ptr, ptr[:-1].clone(), None, None, none, none.clone())


def sparse_map(ptr: Tensor, index: Tensor, size: int, weight: Tensor | None = None, other: Tensor | None = None) -> SparseMap:
    """Both orders of a sum over a table of ``size`` rows, made on the CPU and moved to where ``ptr`` is."""
    device = ptr.device
    ptr, index = _int32(ptr.cpu()), _int32(index.cpu())
    other = None if other is None else _int32(other.cpu())
    if weight is not None:
        weight = weight.cpu() if weight.dtype == torch.int8 else _int32(weight.cpu())
    both = SparseMap(Lists(ptr, index, weight, other, *_pieces(ptr, len(index))), by_value(ptr, index, size, weight, other))
    return both if device.type == "cpu" else both.to(device)
