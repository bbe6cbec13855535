"""What a call depends on beside the model: modes of PyTorch, precision, several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from loops import Net, Normed, trained
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from enfa.nn.cuda import replay


class _Doubled(TorchFunctionMode):
    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = function(*args, **(kwargs or {}))
        return out * 2 if function is torch.tanh else out


class _Dispatched(TorchDispatchMode):
    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = function(*args, **(kwargs or {}))
        return out * 2 if function is torch.ops.aten.tanh.default else out


@pytest.mark.parametrize("mode", [_Doubled, _Dispatched])
def test_modes_that_look_at_operations(mode: Any, same_loop: Callable[..., Any]) -> None:
    def loop(model: Any, every: list[Any]) -> Any:
        before = trained(model, every[:4])
        with mode():
            return before, trained(model, every[4:])

    assert same_loop(Net, loop, 8).replays.replayed == 3


def test_a_default_device_is_no_such_mode(device: str, same_loop: Callable[..., Any]) -> None:
    def loop(model: Any, every: list[Any]) -> Any:
        with torch.device(device):
            return trained(model, every)

    assert same_loop(Net, loop).replays.replayed == 5


def test_derivatives_forwards(same_loop: Callable[..., Any]) -> None:
    def loop(model: Any, every: list[Any]) -> list[Tensor]:
        model.requires_grad_(False)
        with forward_ad.dual_level():
            dual = {n: forward_ad.make_dual(p.detach(), torch.ones_like(p)) for n, p in model.named_parameters()}
            return [forward_ad.unpack_dual(torch.func.functional_call(model, dual, (b,))).tangent for b in every]

    outcome = same_loop(Net, loop)
    assert outcome.replays.replayed == 0 and not outcome.told  # it is not tried either


def test_transforms_of_functions(same_loop: Callable[..., Any]) -> None:
    def loop(model: Any, every: list[Any]) -> list[Any]:
        weights = {n: p.detach() for n, p in model.named_parameters()}
        grad = torch.func.grad(lambda w, b: torch.func.functional_call(model, w, (b,)).square().mean())
        return [grad(weights, batch) for batch in every]

    assert same_loop(Net, loop).replays.replayed == 0


class _Square(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return weight.square()


def test_weights_that_are_computed_once(same_loop: Callable[..., Any]) -> None:
    """Under ``parametrize.cached()``; without it they are computed by the graph."""

    def loop(model: Any, every: list[Any]) -> list[Tensor]:
        parametrize.register_parametrization(model.head, "weight", _Square())
        model.eval()
        found = []
        with torch.no_grad():
            for _ in range(3):
                with parametrize.cached():
                    found += [model(batch) for batch in every[:3]]
                model.head.parametrizations.weight.original.mul_(1.5)
        return found

    assert same_loop(Net, loop).replays.replayed == 0

    def learning(model: Any, every: list[Any]) -> list[Tensor]:
        parametrize.register_parametrization(model.head, "weight", _Square())
        return trained(model, every)

    assert same_loop(Net, learning).replays.replayed == 5


@pytest.fixture
def precision() -> Iterator[Any]:
    """PyTorch's newer way to set it, after which the older one refuses to tell of it."""
    matmul = torch.backends.cuda.matmul
    if not hasattr(matmul, "fp32_precision"):
        pytest.skip("since PyTorch 2.9")
    before = matmul.fp32_precision
    yield matmul
    matmul.fp32_precision = before


def test_precision_set_in_the_newer_way(precision: Any, same_loop: Callable[..., Any]) -> None:
    def loop(model: Any, every: list[Any]) -> Any:
        precision.fp32_precision = "ieee"
        losses = trained(model, every[:3])
        precision.fp32_precision = "tf32"
        return losses + trained(model, every[3:])

    outcome = same_loop(Net, loop)
    assert outcome.replays.captured == 2 and outcome.replays.replayed == 4


def test_grad_modes_and_autocast_have_graphs_of_their_own(device: str, same_loop: Callable[..., Any]) -> None:
    class Narrow(Net):
        def hidden(self, bag: Any) -> Tensor:
            return super().hidden(bag).float() @ torch.eye(4, device=self.lin.weight.device)

        def forward(self, bag: Any) -> Any:
            return self.hidden(bag)

    def loop(model: Any, every: list[Any]) -> Any:
        found = []
        for how in (torch.no_grad, torch.inference_mode, torch.enable_grad):
            for dtype in (None, torch.bfloat16, torch.float16):
                for batch in every[:3]:
                    with how(), torch.autocast(device, dtype, enabled=dtype is not None):
                        out = model(batch)
                    assert out.dtype == (dtype or torch.float32) and out.requires_grad == (how is torch.enable_grad)
                    found.append(out.detach().clone().float())
        return found

    outcome = same_loop(Narrow, loop)
    assert outcome.replays.captured >= 9 and outcome.replays.replayed == 18


def test_statistics_over_processes_are_not_captured(monkeypatch: pytest.MonkeyPatch, same_loop: Callable[..., Any]) -> None:
    """A process that captures would not take part in the sums of the others."""
    monkeypatch.setattr(replay, "process_group", lambda: object())
    outcome = same_loop(Normed, trained)
    assert outcome.replays.replayed == 0 and "sums over processes" in outcome.told[0]
    assert same_loop(Net, trained).replays.replayed == 5
