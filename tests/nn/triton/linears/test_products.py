"""Linears with the ReLU behind them: products, linear, small, split and wide."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from enfa.nn.triton.linears.linear import linear
from enfa.nn.triton.linears.products import add_parts, tall_times
from enfa.nn.triton.linears.small import small_linear
from enfa.nn.triton.linears.split import split_weight
from enfa.nn.triton.linears.wide import weight_parts, wide_times

SHAPES = [(1, 1, 1), (70, 7, 5), (70, 64, 33), (1, 65, 3), (33, 70, 130)]  # up to 64 narrow, from 65 on wide


def _off_the_kink(rows: int, weight: Tensor, bias: Tensor) -> Tensor:
    """Rows of x of which rounding decides nothing."""
    x = torch.randn(rows, weight.shape[1]).double()
    while (near := (F.linear(x, weight, bias).abs() < 1e-4).any(1)).any():
        x[near] = torch.randn(int(near.sum()), x.shape[1]).double()
    return x


@pytest.mark.parametrize("kernel", [linear, small_linear], ids=["linear", "small"])
@pytest.mark.parametrize(("rows", "ins", "outs"), SHAPES)
def test_a_linear_and_its_relu(check, kernel, rows: int, ins: int, outs: int) -> None:
    weight, bias, above = torch.randn(outs, ins).double(), torch.randn(outs).double(), torch.randn(rows, outs).double()
    inputs = [_off_the_kink(rows, weight, bias), weight, bias]
    results = []
    plain = (lambda *ins: F.linear(*ins).relu(), torch.float64, "cpu")
    for function, kind, device in (plain, (lambda *ins: kernel(*ins, True), torch.float32, check.device)):
        there = [t.to(device, kind, copy=True).requires_grad_() for t in inputs]
        out = function(*there)
        results.append([out, *torch.autograd.grad(out, there, above.to(device, kind))])
    check.near(results[1], results[0], 2e-6)


@pytest.mark.parametrize("bias", [True, False])
def test_few_rows_without_a_relu(check, bias: bool) -> None:
    x, weight, shift = torch.randn(37, 9), torch.randn(40, 9), torch.randn(40) if bias else None
    found = small_linear(*(None if t is None else t.to(check.device) for t in (x, weight, shift)), False)  # type: ignore[arg-type]
    check.near([found], [F.linear(x, weight, shift)], 2e-6)


@pytest.mark.parametrize("rows", [1, 100])
@pytest.mark.parametrize(("ins", "outs"), [(7, 5), (1, 64)])
def test_narrow_products_forwards_and_back(check, rows: int, ins: int, outs: int) -> None:
    x, weight, grad = (torch.randn(*s).to(check.device) for s in ((rows, ins), (outs, ins), (rows, outs)))
    check.near([tall_times(x, weight, None, False)], [(x.double() @ weight.double().T).cpu()], 2e-6)
    check.near([tall_times(grad, weight, None, True)], [(grad.double() @ weight.double()).cpu()], 2e-6)


@pytest.mark.parametrize(("rows", "ins", "outs"), [(1, 65, 1), (70, 70, 130), (33, 128, 128), (33, 80, 161)])
def test_wide_products_are_accurate_entry_by_entry(check, rows: int, ins: int, outs: int) -> None:
    """Also where the rows differ in size by many powers of ten."""

    def spread(rows: int, cols: int, powers: float) -> Tensor:
        return (torch.randn(rows, cols) * 10 ** (powers * (2 * torch.rand(rows, 1) - 1))).to(check.device)

    def within(found: Tensor, a: Tensor, b: Tensor) -> None:
        a, b = a.double(), b.double()
        assert found.shape == (len(a), b.shape[1])
        assert ((found.double() - a @ b).abs() <= 2e-6 * (a.abs() @ b.abs())).all()

    weight, x, grad = spread(outs, ins, 3), spread(rows, ins, 6), spread(rows, outs, 6)
    split = split_weight(weight)
    assert split is not None
    within(wide_times(x, split, weight.shape, None, False), x, weight.T)
    within(wide_times(grad, split, weight.shape, None, True), grad, weight)
    plus = torch.randn(rows, outs).to(check.device)
    more = wide_times(x, split, weight.shape, plus[0], False, plus=plus, relu=True)
    assert torch.equal(more, (wide_times(x, split, weight.shape, None, False) + plus[0] + plus).relu())
    both = add_parts(weight_parts(grad, x, sums=True), 0, torch.float32)
    within(both[: outs * ins].view(outs, ins), grad.T, x)
    within(both[outs * ins :, None], grad.T, x.new_ones(rows, 1))


def test_not_a_number_stays_in_its_row(check) -> None:
    weight, x = torch.randn(70, 70).to(check.device), torch.randn(40, 70).to(check.device)
    x[3], x[7, 5] = 0, torch.nan
    split = split_weight(weight)
    assert split is not None
    out = wide_times(x, split, weight.shape, None, False)
    assert (out[3] == 0).all() and out[7].isnan().all() and int(out.isnan().any(1).sum()) == 1
