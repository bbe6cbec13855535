"""Sums over many rows: what a plain product gives, but closer to it in exact arithmetic."""

import pytest
import torch
from torch import Tensor

from enfa.nn.ops.blocks import LONG, ROWS, across, counted

FEW_UNITS = 16 * torch.finfo(torch.float32).eps
LENGTHS = [0, 1, ROWS - 1, ROWS, 2 * ROWS + 1, 2 * LONG - 1, 2 * LONG, 3 * LONG + 5, 50 * LONG + 1, 100_003]


def _rows(length: int, channels: int) -> Tensor:
    """Few kinds of rows, as in a batch: the errors of equal terms do not cancel."""
    drawn = torch.Generator().manual_seed(length)
    kinds = torch.rand(5, channels, generator=drawn) + 0.5
    return kinds[torch.randint(5, (length,), generator=drawn)]


@pytest.mark.parametrize("length", LENGTHS)
def test_counted(length: int) -> None:
    rows, copies = _rows(length, 3), torch.arange(length).remainder(4).float()
    exact = copies.double() @ rows.double()
    assert (counted(copies, rows) - exact).abs().max() <= FEW_UNITS * exact.max()
    assert torch.allclose(counted(copies.double(), rows.double()), exact, rtol=1e-11)


@pytest.mark.parametrize("length", LENGTHS)
def test_across(length: int) -> None:
    left, right = _rows(length, 3), _rows(length, 4)
    exact = left.double().T @ right.double()
    assert across(left, right).shape == (3, 4)
    assert (across(left, right) - exact).abs().max() <= 8 * FEW_UNITS * exact.max()
    assert torch.allclose(across(left.double(), right.double()), exact, rtol=1e-11)


def test_rows_need_not_lie_side_by_side() -> None:
    rows = _rows(5 * LONG, 6)[:, ::2]
    assert torch.allclose(across(rows, rows), rows.T @ rows, rtol=1e-4) and not rows.is_contiguous()
