"""Sums over lists of rows in both orders: what each sum reads, and, for gradients, who reads each row.

Both orders are made once, on the CPU, so that no device ever sorts and no kernel ever adds atomically. Numbers are
int32, which is what kernels read fastest: a plan has fewer than 2^31 rows and messages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from enfa.plan.arrays import Arrays
from enfa.plan.kernels.order import split_long, turn_round

__all__ = ["CHUNK", "Lists", "SparseMap", "by_value", "lists", "sparse_map"]

CHUNK = 32  # a list longer than this is summed in pieces, so that a row with very many readers delays nobody


@dataclass(eq=False)
class Lists(Arrays):
    """List n has entries ``ptr[n]:ptr[n+1]``.

    Lists of more than CHUNK entries go on in ``extra``, pieces of at most CHUNK entries each, whose sums a second pass
    adds up: list ``long[0, i]`` has pieces ``long[1, i]`` to ``long[2, i]``.
    """

    ptr: Tensor  # int32 [n+1]
    index: Tensor  # int32 [k]
    weight: Tensor | None  # int32 [k]
    other: Tensor | None  # int32 [k]: the kind of edge, or -1; in lists by kind, the row that the message comes from
    extra: Tensor  # int32 [3, pieces]: begin, end, list
    long: Tensor  # int32 [3, long lists]

    def __len__(self) -> int:
        return len(self.ptr) - 1


@dataclass(eq=False)
class SparseMap(Arrays):
    """A sparse matrix: ``forward`` has a list per sum, ``backward`` a list per row of the table that is summed."""

    forward: Lists
    backward: Lists


def _int32(tensor: Tensor) -> Tensor:
    return tensor.to(torch.int32)


def _pieces(ptr: Tensor) -> tuple[Tensor, Tensor]:
    behind = np.maximum(np.diff(ptr.numpy()) - CHUNK, 0)
    extra = torch.zeros(3, int((-(-behind // CHUNK)).sum()), dtype=torch.int32)
    long = torch.zeros(3, int(np.count_nonzero(behind)), dtype=torch.int32)
    if long.shape[1]:
        split_long(ptr.numpy(), CHUNK, CHUNK, extra.numpy(), long.numpy())
    return extra, long


def lists(ptr: Tensor, index: Tensor, weight: Tensor | None = None, other: Tensor | None = None) -> Lists:
    """Lists as they are, int32, long ones in pieces. On the CPU."""
    ptr, index = _int32(ptr), _int32(index)
    weight, other = (None if t is None else _int32(t) for t in (weight, other))
    return Lists(ptr, index, weight, other, *_pieces(ptr))


def by_value(
    ptr: Tensor, index: Tensor, size: int, weight: Tensor | None = None, other: Tensor | None = None
) -> Lists:
    """For each value of ``index`` from 0 to ``size - 1`` the lists that hold it."""
    new_ptr, at = torch.zeros(size + 1, dtype=torch.int32), torch.empty(size, dtype=torch.int32)
    new_index, entry = torch.empty(len(index), dtype=torch.int32), torch.empty(len(index), dtype=torch.int32)
    turn_round(*(t.numpy() for t in (ptr, index, new_ptr, at, new_index, entry)))
    weight, other = (None if t is None else _int32(t.index_select(0, entry)) for t in (weight, other))
    return Lists(new_ptr, new_index, weight, other, *_pieces(new_ptr))


def sparse_map(
    ptr: Tensor, index: Tensor, size: int, weight: Tensor | None = None, other: Tensor | None = None
) -> SparseMap:
    """Both orders of a sum over a table of ``size`` rows, made on the CPU and moved to where ``ptr`` is."""
    device = ptr.device
    ptr, index = ptr.cpu(), index.cpu()
    weight, other = (None if t is None else t.cpu() for t in (weight, other))
    both = SparseMap(lists(ptr, index, weight, other), by_value(ptr, index, size, weight, other))
    return both if device.type == "cpu" else both.to(device)
