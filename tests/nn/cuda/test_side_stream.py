"""Gradients that are computed aside are waited for by everybody who reads them, and are the same."""

from __future__ import annotations

import copy
import gc
import threading
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import enfa
import enfa.nn.cuda.side_stream
from enfa.nn import Step
from enfa.nn.cuda.side_stream import Aside, aside, lend
from enfa.testing import random_graphs

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="streams and CUDA graphs need a GPU")


class _Log(Aside):
    """Writes down what happens when."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []

    def run(self, work: Callable[..., Any], *read: Any) -> Any:
        self.log.append("run")
        return super().run(work, *read)

    def wait(self) -> None:
        self.log.append("wait")


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, beside: Aside) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.beside, ctx.biased = beside, bias is not None
        return F.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        of_weight, of_bias = ctx.beside.run(lambda g, x: (g.T @ x, g.sum(0)), grad, x)
        return grad @ weight, of_weight, of_bias if ctx.biased else None, None


class _Logged(torch.autograd.Function):
    """Nothing, and a line in the log backwards."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, log: list[str]) -> Tensor:
        ctx.log = log
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        ctx.log.append("first")
        return grad, None


def _through(x: Tensor, *linears: nn.Linear) -> Tensor:
    for linear in linears:
        x = torch.tanh(_Linear.apply(x, *lend(linear.weight, linear.bias)))
    return x


@pytest.fixture
def two() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 4, bias=False)).double()


def test_whoever_reads_a_gradient_has_waited(two: nn.Sequential) -> None:
    beside, x = _Log(), torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    for parameter in two.parameters():
        parameter.register_hook(lambda _: beside.log.append("read"))
    with aside(two, beside):
        out = _through(_Logged.apply(x, beside.log), two[0], two[1])
    out.sum().backward()
    # also after the work in front of the linears, which needs the device as little as they do
    assert beside.log == ["run", "run", "first", *["wait", "read"] * 3]


def test_what_a_step_does_not_use_gets_no_gradient(two: nn.Sequential) -> None:
    """Nor are its hooks called, which would not know what to do with None."""
    beside, called = _Log(), []
    for name, parameter in two.named_parameters():
        parameter.register_hook(lambda grad, name=name: called.append((name, grad is None)))
        parameter.register_post_accumulate_grad_hook(lambda p, name=name: called.append((name, p.grad is None)))
    with aside(two, beside):
        out = _through(torch.randn(5, 3, dtype=torch.float64), two[0])
    out.sum().backward()
    assert beside.log.count("run") == 1
    assert sorted(called) == [("0.bias", False)] * 2 + [("0.weight", False)] * 2
    assert two[1].weight.grad is None


@pytest.mark.parametrize("how", ["once", "twice", "also directly", "frozen"])
def test_gradients_are_the_same(two: nn.Sequential, how: str) -> None:
    x = torch.randn(5, 3, dtype=torch.float64)
    if how == "frozen":
        two[0].weight.requires_grad_(False)

    def gradients(beside: Aside | None) -> list[Tensor | None]:
        two.zero_grad()
        with aside(two, beside):
            out = _through(x, two[0], two[1], *([two[1]] if how == "twice" else []))
        loss = out.sum() + (two[1].weight.square().sum() if how == "also directly" else 0)
        loss.backward()
        return [p.grad for p in two.parameters()]

    beside = _Log()
    for expected, found in zip(gradients(None), gradients(beside), strict=True):
        assert (expected is None) == (found is None)
        if expected is not None:
            torch.testing.assert_close(found, expected)
    # a second gradient of one parameter, and those of a linear that is frozen in part, come at once
    assert beside.log.count("run") == (1 if how == "frozen" else 2)


def test_nothing_is_lent_outside(two: nn.Sequential) -> None:
    with aside(two, _Log()):
        pass
    weight, bias, beside = lend(two[0].weight, two[0].bias)
    assert weight is two[0].weight and bias is two[0].bias and beside.stream is None
    with aside(two):  # not captured
        assert lend(two[0].weight, two[0].bias)[0] is two[0].weight


def test_nothing_keeps_what_was_lent(two: nn.Sequential) -> None:
    """Nor the node that adds up a parameter's gradient on the stream of its time, which a later step would have to wait for."""
    gc.disable()
    try:
        with aside(two, _Log()) as _:
            node = torch.autograd.graph.get_gradient_edge(two[0].weight).node
            node.metadata["seen"] = True
            del node
        assert "seen" not in torch.autograd.graph.get_gradient_edge(two[0].weight).node.metadata
    finally:
        gc.enable()


def test_every_thread_lends_its_own(two: nn.Sequential) -> None:
    """Also where the first to begin ends first: it must not come back when the second ends."""
    began, ended, late = threading.Event(), threading.Event(), _Log()

    def other() -> None:
        with aside(two[0], late):
            began.set()
            ended.wait(10)

    thread = threading.Thread(target=other)
    with aside(two[1], mine := _Log()):
        thread.start()
        began.wait(10)
        of_other, (weight, _, beside) = lend(two[0].weight, two[0].bias), lend(two[1].weight, None)
        lent = len(late.lent)
    ended.set()
    thread.join()
    assert of_other[0] is two[0].weight and lent == 2
    assert weight is not two[1].weight and beside is mine
    assert enfa.nn.cuda.side_stream._current.beside.stream is None and not enfa.nn.cuda.side_stream._current.beside.lent


def _steps(model: nn.Module, plan: enfa.Bag, loss: Any, capture: bool, clip: float | None) -> dict[str, Tensor]:
    model = copy.deepcopy(model)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, fused=True, capturable=True)
    step = Step(model, optimiser, lambda out, y: loss(model, out, y), capture=capture, clip_norm=clip)
    for _ in range(6):
        step(plan)
    assert (step.eager_steps == 1) == capture
    return model.state_dict()


@cuda
@pytest.mark.parametrize("how", ["plain", "tied", "regularised", "clipped", "little room"])
def test_captured_steps_with_wide_weights_have_the_bits_of_eager_ones(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model = enfa.DSGNN([5, 3], 128, 2, 3, "gine", edge_channels=[4, 3]).cuda().train()
    plan = enfa.make_plan(random_graphs(200, 14, channels=[5, 3], edge_channels=[4, 3], seed=1), enfa.NodeMarking(), model)
    plan.y = torch.arange(200) % 2
    if how == "tied":
        model.layers[2].conv.update[0] = model.layers[1].conv.update[3]
    if how == "little room":
        monkeypatch.setattr(enfa.nn.cuda.side_stream, "MOST", 0)
    ran: list[int] = []
    real = Aside.run
    monkeypatch.setattr(Aside, "run", lambda self, *a: (ran.append(self.stream is not None), real(self, *a))[1])

    def loss(model: nn.Module, out: Tensor, y: Tensor) -> Tensor:
        more = sum(p.square().sum() for p in model.parameters()) if how == "regularised" else 0
        return F.cross_entropy(out, y) + 1e-3 * more

    clip = 0.5 if how == "clipped" else None
    eager = _steps(model, plan, loss, False, clip)
    assert ran and not any(ran)
    captured = _steps(model, plan, loss, True, clip)
    assert sum(ran) >= 5
    for name, value in eager.items():
        assert torch.equal(value, captured[name]), name


class _FakeStream:
    """Writes down for whom it waits."""

    def __init__(self) -> None:
        self.waited: list[Any] = []

    def wait_stream(self, other: Any) -> None:
        self.waited.append(other)


def test_too_much_that_waits_is_let_go_by_the_stream_that_has_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory of another stream, which has not, would be written into while it is read."""
    one, two, beside = _FakeStream(), _FakeStream(), Aside(_FakeStream())
    monkeypatch.setattr(enfa.nn.cuda.side_stream, "MOST", 100)
    monkeypatch.setattr(torch.cuda, "stream", lambda _: nullcontext())

    def run(stream: _FakeStream) -> weakref.ref[Tensor]:
        monkeypatch.setattr(torch.cuda, "current_stream", lambda: stream)
        read = torch.zeros(20)
        beside.run(lambda _: None, read)
        return weakref.ref(read)

    first, second = run(one), run(two)
    assert first() is not None and second() is not None and not one.waited and not two.waited
    third = run(two)
    assert two.waited == [beside.stream] and second() is None  # it may be used again by the one that has waited
    assert not one.waited and first() is not None and third() is not None
    beside.wait()
    assert first() is None and third() is None
