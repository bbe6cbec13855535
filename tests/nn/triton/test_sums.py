"""Sums over lists of rows, and GINE's: sums, gine, gine_both."""

import pytest
import torch
from torch import Tensor

from enfa.nn.convs.gine import _Listed
from enfa.nn.ops.segment import weighted_sum
from enfa.nn.triton.gine import gine_sum
from enfa.plan.derived.maps import FEW_KINDS, kind_lists, merged_map
from enfa.plan.derived.order import CHUNK
from enfa.plan.links import Links, Sums

MOST = {torch.float64: 1e-13, torch.float32: 1e-6, torch.bfloat16: 1e-2}


def _ptr(counts: list[int]) -> Tensor:
    return torch.tensor([0, *counts]).cumsum(0)


@pytest.mark.parametrize(
    ("channels", "dtype", "weights"),
    [
        (1, torch.float64, torch.int8), (33, torch.float32, torch.int32), (128, torch.float32, torch.int8),
        (40, torch.bfloat16, torch.int8),
    ],
)  # fmt: skip
def test_weighted_sums(check, channels: int, dtype: torch.dtype, weights: torch.dtype) -> None:
    """Of empty lists, of short ones and of such that are cut into pieces, forwards and over their readers backwards."""
    ptr = _ptr([0, 1, 5, 0, 2 * CHUNK + 3, 7, CHUNK, 4, 0])
    row, weight = torch.randint(0, 11, (int(ptr[-1]),)), torch.randint(-127, 128, (int(ptr[-1]),)).to(weights)
    table, grad = torch.randn(12, channels).to(dtype), torch.randn(len(ptr) - 1, channels).to(dtype)
    dense = torch.zeros(len(ptr) - 1, 12).double()
    dense.index_put_((torch.arange(len(ptr) - 1).repeat_interleave(ptr.diff()), row), weight.double(), accumulate=True)
    there = table.to(check.device).requires_grad_()
    out = weighted_sum(there, Sums(ptr, row, weight).to(check.device))
    (back,) = torch.autograd.grad(out, there, grad.to(check.device))
    assert out.dtype == back.dtype == dtype
    check.near([out, back], [dense @ table.double(), dense.T @ grad.double()], MOST[dtype])


def test_no_lists(check) -> None:
    table = torch.randn(4, 3, device=check.device, requires_grad=True)
    none = torch.zeros(0, dtype=torch.int64)
    out = weighted_sum(table, Sums(torch.zeros(1, dtype=torch.int64), none, none.int()).to(check.device))
    out.sum().backward()
    assert out.shape == (0, 3) and not table.grad.any()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("kinds", "rows", "channels", "dtype"),
    [
        (1, 1, 1, torch.float64), (5, 13, 20, torch.float32), (FEW_KINDS, 5, 1, torch.float64),
        (FEW_KINDS + 1, 13, 20, torch.float32), (FEW_KINDS + 1, 1, 1, torch.float64), (3, 9, 130, torch.float64),
    ],
)  # fmt: skip
def test_gine(check, kinds: int, rows: int, channels: int, dtype: torch.dtype) -> None:
    """Few kinds of edges have both gradients in one pass; one row is read by half of all, so that its list is long."""
    outs = 40 if rows > 1 else 3
    ptr = _ptr(torch.randint(0, 6, (outs,)).tolist())
    row, kind = torch.randint(0, rows, (int(ptr[-1]),)), torch.randint(0, kinds, (int(ptr[-1]),))
    row[torch.rand(len(row)) < 0.5] = rows // 2
    links = Links(torch.randint(0, rows, (outs,)), ptr, row, kind)
    both = merged_map(links, rows, kinds=True), kind_lists(links, kinds)
    assert (both[1] is None) == (kinds <= FEW_KINDS)
    ins, grad = [torch.randn(n, channels).to(dtype) for n in (rows, kinds)], torch.randn(outs, channels).to(dtype)
    results = []
    for function, to in ((_Listed.apply, ("cpu", torch.float64)), (gine_sum, (check.device, dtype))):
        there = [t.to(*to, copy=True).requires_grad_() for t in ins]  # type: ignore[call-overload]
        out = function(*there, *(lists and lists.to(to[0]) for lists in both))
        results.append([out, *torch.autograd.grad(out, there, grad.to(*to))])  # type: ignore[call-overload]
    check.near(results[1], results[0], MOST[dtype])


@pytest.mark.parametrize(
    ("kinds", "channels", "dtype"), [(1, 1, torch.float64), (4, 96, torch.float32), (9, 130, torch.float64)]
)
def test_gine_whose_own_rows_are_scaled(check, kinds: int, channels: int, dtype: torch.dtype) -> None:
    """1 + eps times, and eps has a gradient. One row is the own row, and the sender, of most: its list is long."""
    rows, outs = 7, 60
    ptr = _ptr(torch.randint(0, 6, (outs,)).tolist())
    row, kind = torch.randint(0, rows, (int(ptr[-1]),)), torch.randint(0, kinds, (int(ptr[-1]),))
    own = torch.randint(0, rows, (outs,))
    row[torch.rand(len(row)) < 0.5], own[torch.rand(outs) < 0.5] = 3, 3
    links = Links(own, ptr, row, kind)
    both = merged_map(links, rows, kinds=True), kind_lists(links, kinds)
    ins = [torch.randn(rows, channels), torch.randn(kinds, channels), torch.tensor([0.4])]
    grad, results = torch.randn(outs, channels), []
    for plain, to in ((True, ("cpu", torch.float64)), (False, (check.device, dtype))):
        table, edge, eps = there = [t.to(*to, copy=True).requires_grad_() for t in ins]  # type: ignore[call-overload]
        lists = [part and part.to(to[0]) for part in both]
        out = _Listed.apply(table, edge, *lists) + eps * table[own] if plain else gine_sum(table, edge, *lists, eps)
        results.append([out, *torch.autograd.grad(out, there, grad.to(*to))])  # type: ignore[call-overload]
    check.near(results[1], results[0], MOST[dtype])


@pytest.mark.parametrize("kinds", [4, FEW_KINDS + 1])
def test_not_a_number_reaches_its_row_and_kind_only(check, kinds: int) -> None:
    ptr = _ptr([3] * 20)
    links = Links(torch.arange(20), ptr, torch.randint(0, 20, (60,)), torch.randint(0, kinds, (60,)))
    both = merged_map(links, 20, kinds=True), kind_lists(links, kinds)
    ins, grad = [torch.randn(n, 5).double().requires_grad_() for n in (20, kinds)], torch.randn(20, 5).double()
    grad[7, 2], grad[9, 3] = torch.nan, torch.inf
    exact = torch.autograd.grad(_Listed.apply(*ins, *both), ins, grad)
    there = [t.detach().to(check.device).requires_grad_() for t in ins]
    out = gine_sum(*there, *(lists and lists.to(check.device) for lists in both))
    found = torch.autograd.grad(out, there, grad.to(check.device))
    assert all(g.isnan().any() and not g.isnan().all() for g in exact)
    for value, reference in zip(found, exact):
        torch.testing.assert_close(value.cpu(), reference, equal_nan=True)
