"""Rows of two tables added up in a third, sums of several tensors, and rows that several operations read: joined, several."""

import pytest
import torch
from torch import Tensor

from enfa.nn.triton.joined import joined_sum
from enfa.nn.triton.several import add_up, fan_out
from enfa.plan.derived.maps import readers
from enfa.plan.derived.order import CHUNK

MOST = {torch.float64: 1e-13, torch.float32: 1e-6}


def _gradients(out: Tensor, read: list[Tensor], grad: Tensor) -> list[Tensor]:
    return [out, *torch.autograd.grad(out, read, grad)]


@pytest.mark.parametrize("scaled", [True, False], ids=["scaled", "plain"])
@pytest.mark.parametrize(("channels", "dtype"), [(3, torch.float64), (96, torch.float32), (130, torch.float64)])
def test_joined(check, channels: int, dtype: torch.dtype, scaled: bool) -> None:
    """One row is read by half of all, so that its list is cut into pieces; one by none."""
    rows = 4 * CHUNK
    index = torch.randint(0, 6, (rows,)) * torch.randint(0, 2, (rows,))
    read = [torch.randn(rows, channels), torch.randn(7, channels), torch.tensor([1.3])][: 3 if scaled else 2]
    read, grad = [value.to(dtype) for value in read], torch.randn(rows, channels, dtype=dtype)
    exact = [value.double().requires_grad_() for value in read]
    wanted = _gradients((exact[2] if scaled else 1) * exact[0] + exact[1][index], exact, grad.double())
    there, own = [value.to(check.device).requires_grad_() for value in read], index.int().to(check.device)
    found = joined_sum(*there[:2], there[2] if scaled else None, own, readers(own, 7, {}, "own"))
    check.near(_gradients(found, there, grad.to(check.device)), wanted, MOST[dtype])


def test_rows_that_nothing_reads_may_hold_anything(check) -> None:
    """They are padding: the gradient of the scale is a sum over all rows."""
    x = torch.tensor([[1.0], [float("nan")]], device=check.device, requires_grad=True)
    y, scale = (torch.ones(*shape, device=check.device, requires_grad=True) for shape in ([1, 1], [1]))
    own, grad = torch.zeros(2, dtype=torch.int32, device=check.device), torch.tensor([[2.0], [0.0]], device=check.device)
    out = joined_sum(x, y, scale, own, readers(own, 1, {}, "own"))
    assert float(torch.autograd.grad(out, scale, grad)[0]) == 2


def test_no_rows(check) -> None:
    x, none = torch.zeros(0, 3, device=check.device, requires_grad=True), torch.zeros(0, dtype=torch.int32, device=check.device)
    y, scale = (torch.ones(*shape, device=check.device, requires_grad=True) for shape in ([2, 3], [1]))
    out = joined_sum(x, y, scale, none, readers(none, 2, {}, "own"))
    of_x, of_y, of_scale = torch.autograd.grad(out.sum(), [x, y, scale])
    assert out.shape == of_x.shape == (0, 3) and not of_y.any() and not of_scale.any()


@pytest.mark.parametrize("count", [2, 3, 4, 7])
def test_several_terms_and_readers(check, count: int) -> None:
    terms = [torch.randn(33, 50).requires_grad_() for _ in range(count)]
    grads = [torch.randn(33, 50) for _ in range(count)]
    there = [term.detach().to(check.device).requires_grad_() for term in terms]
    found = _gradients(add_up(*there), there, grads[0].to(check.device))
    check.near(found, _gradients(torch.stack(terms).double().sum(0), terms, grads[0].double()), 1e-6)
    outs = fan_out(there[0], count)
    assert all(torch.equal(out, there[0]) for out in outs)
    loss = sum((out * grad.to(check.device)).sum() for out, grad in zip(outs, grads))
    (back,) = torch.autograd.grad(loss, there[0])
    check.near([back], [torch.stack(grads).double().sum(0)], 1e-6)


def test_readers_without_gradients(check) -> None:
    x = torch.randn(4, 3, device=check.device, requires_grad=True)
    one, two, _ = fan_out(x, 3)
    assert torch.equal(torch.autograd.grad(one.sum(), x)[0], torch.ones_like(x))
    assert torch.equal(torch.autograd.grad((2 * two).sum(), x)[0], torch.full_like(x, 2))
