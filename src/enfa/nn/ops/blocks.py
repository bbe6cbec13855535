"""Sums over very many rows, in blocks.

The CPU's matrix products add up one row after the other. Over the 10^5 rows of a conventional batch, many of them equal,
the errors do not cancel: a BatchNorm's mean was off by 2e-4 in float32, and by 2e-13 in float64, a thousand units in the
last place. Block by block, the blocks' sums then added pairwise, a few units are left. Other devices do that themselves.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["across", "counted"]

ROWS = 128  # of a block, where a sum is a vector
LONG = 512  # where it is a matrix, at least; more for a wide one, so that the blocks' sums take less room than the rows


def counted(copies: Tensor, x: Tensor) -> Tensor:
    """copies @ x: the sum of all rows, each as often as it counts. [C] from [R] and [R, C]."""
    blocks = len(x) // ROWS
    if blocks < 2 or x.device.type != "cpu":
        return copies @ x
    whole = blocks * ROWS
    parts = torch.bmm(copies[:whole].view(blocks, 1, ROWS), x[:whole].unflatten(0, (blocks, ROWS)))
    return torch.addmv(parts.sum((0, 1)), x[whole:].T, copies[whole:])


def across(left: Tensor, right: Tensor) -> Tensor:
    """left.T @ right: [A, B] from [R, A] and [R, B]."""
    rows = max(LONG, 4 * left.shape[1], 4 * right.shape[1])
    blocks = len(right) // rows
    if blocks < 2 or right.device.type != "cpu":
        return left.T @ right
    whole = blocks * rows
    parts = torch.bmm(left[:whole].unflatten(0, (blocks, rows)).mT, right[:whole].unflatten(0, (blocks, rows)))
    return parts.sum(0).addmm_(left[whole:].T, right[whole:])
