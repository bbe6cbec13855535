from typing import Any

import pytest
import torch
from torch import Tensor

from enfa.nn.ops.function import applied, backward_once


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    @backward_once
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        assert not torch.is_grad_enabled()
        return 3 * ctx.saved_tensors[0] ** 2 * grad


def test_as_apply() -> None:
    x = torch.tensor([2.0], requires_grad=True)
    for out in (applied(Cube, x), Cube.apply(x)):
        assert out.item() == 8.0
        assert torch.autograd.grad(out, x)[0].item() == 12.0


def test_a_second_derivative_is_refused() -> None:
    x = torch.tensor([2.0], requires_grad=True)
    (first,) = torch.autograd.grad(applied(Cube, x) ** 2, x, create_graph=True)
    assert first.item() == 192.0
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.backward()


def test_a_second_derivative_beside_others_is_refused() -> None:
    """PyTorch computes what it can reach, here by the other factor, and says nothing of the rest."""
    x = torch.tensor([2.0], requires_grad=True)
    (first,) = torch.autograd.grad(applied(Cube, x) * x**2, x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        torch.autograd.grad(first, x)


def test_transforms_say_what_they_expect() -> None:
    with pytest.raises(RuntimeError, match="setup_context"):
        torch.func.grad(lambda x: applied(Cube, x).sum())(torch.ones(1))
