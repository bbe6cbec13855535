"""Tables in halves: halved and halved_products."""

from typing import Any

import pytest
import torch
from torch import Tensor

from enfa.nn.triton.linears import linear_norm as module
from enfa.nn.triton.linears.halved import SLACK, TILE, Halved, halve_gradient, halve_rows, is_halved
from enfa.nn.triton.linears.halved_products import halved_parts, halved_times
from enfa.nn.triton.linears.products import add_parts
from enfa.nn.triton.linears.split import split_weight
from enfa.nn.triton.linears.wide import Normed
from enfa.nn.triton.norm import gradient_sums, normalise, statistics, turn_gradient


def spread(rows: int, cols: int, powers: float) -> Tensor:
    """Numbers whose rows differ in size by up to so many powers of two, each way."""
    return torch.randn(rows, cols) * 2 ** (powers * (2 * torch.rand(rows, 1) - 1))


def whole(held: Halved, cols: int) -> Tensor:
    """The numbers that halves stand for, in float64."""
    power = torch.where(held.exponents == 0, 20, held.exponents).double() - 141
    return held.parts.double().sum(0)[:, :cols] * 2 ** power[:, None]


def within(found: Tensor, a: Tensor, b: Tensor) -> None:
    a, b = a.double(), b.double()
    assert found.shape == (len(a), b.shape[1])
    assert ((found.double() - a @ b).abs() <= 2e-6 * (a.abs() @ b.abs())).all()


def gradient_of(above: Tensor, beside: Tensor, stored: bool = False) -> tuple[Halved, Tensor, Tensor | None]:
    """Halves of a gradient, by a norm that leaves it as it is: mean 0, deviation 1, and sums of nothing."""
    rows, cols = above.shape
    saved = torch.stack([above.new_zeros(cols), above.new_ones(cols), above.new_ones(cols)])
    z, sums = torch.zeros_like(above), above.new_zeros(2, cols)
    copies, total = torch.ones(rows, dtype=torch.int32, device=above.device), above.new_full((1,), rows)
    held, downs, _, kept = halve_gradient(above, z, copies, saved, total, None, None, sums, False, beside, stored)
    return held, downs, kept


@pytest.mark.parametrize(("rows", "cols"), [(1, 130), (37, 140)])
def test_halves_keep_twenty_two_bits(check, rows: int, cols: int) -> None:
    x = spread(rows, cols, 60).to(check.device)
    x[0, 1:] = 0
    held = halve_rows(x)
    assert ((whole(held, cols) - x).abs() <= 2.0**-22 * x.abs().double() + 2.0**-39 * x.abs().amax(1, True).double()).all()
    assert (held.parts[:, :, cols:] == 0).all()
    back, downs, kept = gradient_of(x, held.exponents, True)
    assert kept is not None and torch.equal(kept, x)
    assert ((whole(back, cols) - x).abs() <= 2.0**-22 * x.abs().amax(1, True).double()).all()
    assert downs.shape == (-(-rows // TILE),)


@pytest.mark.parametrize("powers", [0.2, 0.12 * SLACK, 35], ids=["alike", "in reach", "marked"])
@pytest.mark.parametrize(("rows", "ins", "outs"), [(1, 130, 129), (70, 140, 256)])
def test_products_of_halves_are_accurate_entry_by_entry(check, rows: int, ins: int, outs: int, powers: float) -> None:
    weight, x, grad = (
        t.to(check.device) for t in (spread(outs, ins, 5), spread(rows, ins, powers), spread(rows, outs, powers))
    )
    if rows > 2:  # of no account, whatever is beside them
        x[1], grad[1], x[2] = 1e25, 0, 0
    split = split_weight(weight)
    assert split is not None
    held = halve_rows(x)
    within(halved_times(held, split, weight.shape, None, False), x, weight.T)
    plus = torch.randn(rows, outs).to(check.device)
    more = halved_times(held, split, weight.shape, plus[0], False, plus=plus)
    assert torch.equal(more, halved_times(held, split, weight.shape, None, False) + plus[0] + plus)
    back, downs, _ = gradient_of(grad, held.exponents)
    assert bool((downs == 0).any()) == (powers > SLACK and rows > 1)
    within(halved_times(back, split, weight.shape, None, True), grad, weight)
    within(add_parts(halved_parts(back, held, downs, weight.shape), 0, torch.float32).view(outs, ins), grad.T, x)


def _gradients(check, grad: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """Of inputs and weight, within rounding; returned: which tiles are marked."""
    grad, x, weight = (t.to(check.device) for t in (grad, x, weight))
    split, held = split_weight(weight), halve_rows(x)
    assert split is not None
    back, downs, _ = gradient_of(grad, held.exponents)
    within(halved_times(back, split, weight.shape, None, True), grad, weight)
    within(add_parts(halved_parts(back, held, downs, weight.shape), 0, torch.float32).view(weight.shape), grad.T, x)
    return downs == 0


def test_marked_tiles_beside_others(check) -> None:
    x, grad = spread(5 * TILE, 130, 0.2), spread(5 * TILE, 140, 0.2)
    grad[40], grad[-1] = grad[40] * 2.0**30, grad[-1] * 2.0**-30
    assert _gradients(check, grad, x, torch.randn(140, 130)).tolist() == [False, True, False, False, True]


def test_several_marked_tiles_of_one_program(check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("enfa.nn.triton.linears.halved_products.PROGRAMS", 1)
    x, grad = spread(40 * TILE, 130, 0.2), spread(40 * TILE, 129, 0.2)
    grad[:: 2 * TILE] *= 2.0**20
    assert _gradients(check, grad, x, torch.randn(129, 130)).tolist() == [True, False] * 20


@pytest.mark.parametrize("larger", [0, 7, 16, 40])
def test_small_columns_of_large_rows(check, larger: int) -> None:
    """As norms make them: gradients are small where weights are large. Whatever size the rows beside them have."""
    weight, grad = torch.randn(150, 140), torch.randn(TILE, 150)
    grad[:, -16:], weight[-16:] = grad[:, -16:] * 2.0**7, weight[-16:] * 2.0**-7  # the largest are the last
    grad[5] *= 2.0**larger
    _gradients(check, grad, torch.randn(TILE, 140), weight)


@pytest.mark.parametrize(("size", "other"), [(110, -20), (118, -60), (-100, 100), (-60, -60)])
def test_very_large_and_very_small_numbers(check, size: int, other: int) -> None:
    x, weight = torch.randn(40, 130) * 2.0**size, torch.randn(129, 130) * 2.0**other
    split = split_weight(weight.to(check.device))
    assert split is not None
    found = halved_times(halve_rows(x.to(check.device)), split, weight.shape, None, False)
    within(found.cpu(), x, weight.T)
    _gradients(check, torch.randn(40, 129) * 2.0**-size, x, torch.randn(129, 130))


def test_very_small_products(check) -> None:
    assert _gradients(check, torch.randn(40, 129) * 2.0**-58, torch.randn(40, 130) * 2.0**-60, torch.randn(129, 130)).all()


def test_what_is_held_in_halves() -> None:
    assert [is_halved(*shape) for shape in ((129, 129), (128, 300), (300, 128), (1024, 129), (1025, 300))] == [1, 0, 0, 1, 0]


def test_a_norm_in_front_is_computed_on_the_way(check) -> None:
    rows, cols = 45, 131
    x, weight, bias, grad = (torch.randn(*s).to(check.device) for s in ((rows, cols), (cols,), (cols,), (rows, cols)))
    copies = torch.randint(0, 4, (rows,), dtype=torch.int32).to(check.device)
    x[copies == 0] = 1e30  # may hold anything
    out, saved, total = normalise(x, copies, *statistics(x, copies), weight, bias, 1e-5, True, None)
    held = halve_rows(x, Normed(saved, weight, bias, copies))
    assert ((whole(held, cols) - out).abs() <= 2.0**-22 * out.abs().amax(1, True).double()).all()
    x, grad = torch.where((copies == 0)[:, None], 0, x), torch.where((copies == 0)[:, None], 0, grad)
    sums = gradient_sums(grad, x, copies, saved, weight, bias, True)
    known = (grad, x, copies, saved, total, weight, bias, sums, True)
    expected, of_params = turn_gradient(*known)
    back, _, found, _ = halve_gradient(*known, held.exponents, False)
    check.near([whole(back, cols), found], [expected.cpu(), of_params.cpu()], 1e-6)


def test_not_a_number_stays_in_its_row(check) -> None:
    weight, x = torch.randn(130, 130).to(check.device), torch.randn(40, 130).to(check.device)
    x[3], x[7, 5], x[9, 9] = 0, torch.nan, torch.inf
    split = split_weight(weight)
    assert split is not None
    out = halved_times(halve_rows(x), split, weight.shape, None, False)
    assert (out[3] == 0).all() and int((~out.isfinite()).any(1).sum()) == 2 and not out[[7, 9]].isfinite().any()


@pytest.mark.parametrize("added", [True, False], ids=["plus", ""])
def test_linear_and_norm_on_halves(check, added: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two in a row, the norm between them computed where the second linear reads."""
    rows, ins, width, outs = 70, 136, 129, 150
    shapes = [(rows, ins), (width, ins), (width,), (width,), (width,), (outs, width), (outs,), (outs,), (rows, outs)]
    copies, above = torch.randint(0, 4, (rows,)), torch.randn(rows, outs).double()
    above[copies == 0] = 0  # nothing reads a row that does not count
    used: list[Any] = []
    monkeypatch.setattr(module, "halved_parts", lambda *args: used.append(args) or halved_parts(*args))

    def norm(z: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        share = (copies / copies.sum())[:, None]
        mean = (z * share).sum(0)
        return (z - mean) * (((z - mean) ** 2 * share).sum(0) + 1e-5).rsqrt() * weight + bias

    def plain(x, w, b, weight, bias, v, scale, shift, plus):
        return norm(norm(x @ w.T + b, weight, bias).relu() @ v.T + (plus if added else 0), scale, shift)

    while True:  # off the kink
        given = [torch.randn(*shape).double() for shape in shapes]
        x, w, b, weight, bias = given[:5]
        if norm(x @ w.T + b, weight, bias).abs().min() > 1e-4:
            break

    def own(x, w, b, weight, bias, v, scale, shift, plus):
        there = copies.to(check.device, torch.int32)
        middle, saved, _ = module.linear_norm(x, w, b, weight, bias, there, 1e-5, True, None, later=True)
        before = Normed(saved, weight, bias, there)
        return module.linear_norm(
            middle, v, None, scale, shift, there, 1e-5, False, None, before=before, plus=plus if added else None
        )[0]

    results = []
    for function, kind, device in ((plain, torch.float64, "cpu"), (own, torch.float32, check.device)):
        there = [t.to(device, kind, copy=True).requires_grad_() for t in given]
        out = function(*there)
        grads = torch.autograd.grad(out, there, above.to(device, kind), allow_unused=True)
        # a row that does not count comes out as the bias
        results.append([out[copies.to(device) > 0], *(g for g in grads if g is not None)])
    check.near(results[1], results[0], 5e-6)
    assert len(used) == 2
