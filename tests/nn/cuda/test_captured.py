"""Captured steps are eager steps, and both are those of plain PyTorch."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from static_models import EVERY_MODEL, graphs_for, model_for
from torch import Tensor, nn

import enfa
from enfa.batch.static.packed import PackedLoader
from enfa.batch.static.padding import pad_plan
from enfa.nn import GraphedForward, Step
from enfa.nn.bag import make_plan
from enfa.plan.derived.prepare import lean, prepare
from enfa.testing import random_graphs

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
OPTIONS = {
    "gine": {"conv": "gine", "edge_channels": [8, 3]},
    "gin, concat": {"conv": "gin", "jk": "concat", "readout": "mean"},
    "dropout": {"conv": "gine", "edge_channels": [8, 3], "dropout": 0.5},
    "max": {"conv": "graphconv", "readout": "max", "residual": True},
    "gcn": {"conv": "gcn", "jk": "sum", "norm": "layer"},
    "dss": {"conv": "gin", "context": "dss"},
    "mpnn": {"conv": "gine", "context": "mpnn", "edge_channels": [8, 3]},
}


@pytest.fixture(params=OPTIONS)
def model(request: pytest.FixtureRequest) -> nn.Module:
    torch.manual_seed(0)
    options = dict(OPTIONS[request.param])
    context = options.pop("context", None)
    if context:
        return enfa.DSSGNN([5, 3], 16, 2, 3, options.pop("conv"), context, **options)
    return enfa.DSGNN([5, 3], 16, 2, 3, options.pop("conv"), **options)


def _compiled(model: nn.Module, count: int = 46) -> Any:
    graphs = random_graphs(count, 9, channels=[5, 3], edge_channels=[8, 3], seed=5)
    compiled = enfa.compile(graphs, enfa.NodeMarking(), model, progress=False)
    compiled.y = torch.arange(count) % 2
    return compiled


def _adam(model: nn.Module, captured: bool) -> torch.optim.Optimizer:
    more = {"fused": True, "capturable": True} if captured else {}
    rate = 2.0**-7  # the same in float32, which a captured step holds it in
    lr = torch.tensor(rate, device="cuda") if captured else rate
    return torch.optim.Adam(model.parameters(), lr=lr, eps=1e-4, **more)


def _epochs(
    model: nn.Module, device: str, epochs: int = 6, capture: bool = True, workers: int = 2, compiled: Any = None
) -> tuple[list[float], dict[str, Tensor], Step]:
    """Losses, and everything that was learnt, of some epochs with a learning rate that halves."""
    compiled, trained = compiled or _compiled(model), copy.deepcopy(model).to(device).train()
    optimiser = _adam(trained, device == "cuda")
    step = Step(trained, optimiser, F.cross_entropy, capture=capture)
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, 2, 0.5)
    loader = PackedLoader(compiled, model, 8, True, workers, pin=device == "cuda")
    torch.manual_seed(3)
    losses = []
    for _ in range(epochs):
        losses += [step(batch) for batch in loader]
        schedule.step()
    loader.close()
    state = {k: v.detach().cpu().clone() for k, v in trained.state_dict().items()}
    return [float(loss) for loss in losses], state, step


def _plain(model: nn.Module, epochs: int, compiled: Any = None) -> list[float]:
    """The same written out."""
    compiled, trained = compiled or _compiled(model), copy.deepcopy(model).train()
    optimiser = _adam(trained, False)
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, 2, 0.5)
    torch.manual_seed(3)
    losses = []
    loader = enfa.DataLoader(compiled, 8, shuffle=True)
    for _ in range(epochs):
        for plan in loader:
            optimiser.zero_grad()
            loss = F.cross_entropy(trained(plan), plan.y)
            loss.backward()
            optimiser.step()
            losses.append(float(loss.detach()))
        schedule.step()
    return losses


def test_on_the_cpu_packed_steps_are_plain_steps(model: nn.Module) -> None:
    """Three epochs, of which the last has another rate, of three whole batches and a smaller one."""
    compiled = _compiled(model.double(), 30)
    found, _, step = _epochs(model, "cpu", 3, compiled=compiled)
    assert found == pytest.approx(_plain(model, 3, compiled), rel=1e-6)
    assert step.eager_steps == len(found) == 12 and not step.captured


def test_plans_are_taken_too(model: nn.Module) -> None:
    compiled, trained = _compiled(model), copy.deepcopy(model).train()
    step = Step(trained, _adam(trained, False), F.cross_entropy)
    torch.manual_seed(3)  # the head's dropout draws from there
    first = float(step(compiled[:9]))
    torch.manual_seed(3)
    expected = F.cross_entropy(model.train()(compiled[:9]), compiled.y[:9]).detach()
    assert first == pytest.approx(float(expected), rel=1e-6)


ANY = ["Net", "Attention", "Attending", "Union", "Looped", "Told"]


@pytest.mark.parametrize("name", ANY)
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=cuda)])
def test_steps_and_predictions_of_any_model(name: str, device: str) -> None:
    """Against plain PyTorch on plans as they are."""
    model, graphs = model_for(name), graphs_for(name, 1, 20)
    compiled = enfa.compile(graphs, enfa.NodeMarking(), model, progress=False)
    compiled.y = torch.arange(len(graphs)) % 2
    dropout = any(isinstance(module, nn.Dropout) and module.p > 0 for module in model.modules())
    there, plain = copy.deepcopy(model).to(device).train(), copy.deepcopy(model).train()
    step = Step(there, _adam(there, device == "cuda"), F.cross_entropy)
    optimiser = _adam(plain, False)
    packed, plans = PackedLoader(compiled, model, 8, True, 1, pin=device == "cuda"), enfa.DataLoader(compiled, 8, shuffle=True)
    for _ in range(5 if device == "cuda" else 2):  # a graph is captured after some steps
        torch.manual_seed(4)
        found = [float(step(batch)) for batch in packed]
        torch.manual_seed(4)
        expected = []
        for plan in plans:
            optimiser.zero_grad()
            loss = F.cross_entropy(plain(plan), plan.y)
            loss.backward()
            optimiser.step()
            expected.append(float(loss.detach()))
        if device == "cpu" or not dropout:  # which draws other numbers on another device
            assert found == pytest.approx(expected, rel=1e-6)
    packed.close()
    assert any(step.captured.values()) == (device == "cuda")
    forward = GraphedForward(there.eval())
    of_packed = torch.cat([forward(batch) for batch in PackedLoader(compiled, model, 8, pin=device == "cuda")]).cpu()
    with torch.no_grad():
        torch.testing.assert_close(of_packed, there.cpu()(compiled[:]), rtol=1e-9, atol=1e-9)


# one waits where plans have no row for each graph; on a GPU, GINE is a kernel
WAITING = ("root", "gine", "gine, dropout", "mpnn", "esan, invariant", "sswl", "sun")


@pytest.mark.parametrize("name", [name for name in EVERY_MODEL if name not in WAITING])
def test_nothing_waits_for_a_device(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without values on the device nothing can be asked of it, and what is not the CPU takes the way of a GPU."""
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda *_: False)  # knows no device without values
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    model = model_for(name)
    bag = make_plan(graphs_for(name), enfa.NodeMarking(), model)
    plan = pad_plan(lean(prepare(bag, bag.program.needs), bag.program.needs))
    for train in (True, False):
        there = copy.deepcopy(model).train(train).to("meta")
        out = there(plan.map(lambda t: t.to("meta")))
        out.sum().backward()
        assert out.device.type == "meta" and all(p.grad is None or p.grad.is_meta for p in there.parameters())


@cuda
def test_captured_is_eager(model: nn.Module) -> None:
    captured, state, step = _epochs(model, "cuda")
    assert step.capture and any(step.captured.values()) and step.eager_steps < len(captured) / 2
    if model.head[2].p > 0:
        pytest.skip("ordinary dropout in the head: a graph counts its random numbers in another way")
    eager, other, _ = _epochs(model, "cuda", capture=False)
    assert captured == pytest.approx(eager, rel=1e-5)
    for key, value in other.items():
        torch.testing.assert_close(state[key], value, rtol=1e-4, atol=1e-5)


@cuda
def test_captured_is_what_the_cpu_computes(model: nn.Module) -> None:
    if model.head[2].p > 0:
        pytest.skip("the head's dropout draws other numbers on another device")
    captured, _, _ = _epochs(model.double(), "cuda")
    assert captured == pytest.approx(_plain(model.double(), 6), rel=1e-6)  # which the learning rate is part of


@cuda
@pytest.mark.parametrize("workers", [0, 3])
def test_same_bits_twice(model: nn.Module, workers: int) -> None:
    once, again = (_epochs(model, "cuda", workers=w)[1] for w in (2, workers))
    assert all(torch.equal(value, again[key]) for key, value in once.items())


@cuda
def test_a_rate_of_zero_after_capture_stops_learning(model: nn.Module) -> None:
    compiled, trained = _compiled(model), copy.deepcopy(model).cuda().train()
    optimiser = _adam(trained, True)
    step = Step(trained, optimiser, F.cross_entropy)
    loader = PackedLoader(compiled, model, 8, True, 0, pin=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda epoch: float(epoch < 4))
    weights = []
    for _ in range(6):
        for batch in loader:
            step(batch)
        schedule.step()
        weights.append([p.detach().clone() for p in trained.parameters()])
    assert any(step.captured.values())
    assert not all(torch.equal(a, b) for a, b in zip(weights[2], weights[3]))
    assert all(torch.equal(a, b) for a, b in zip(weights[3], weights[5]))


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=cuda)])
def test_predictions(model: nn.Module, device: str) -> None:
    """Also after the weights have changed, which a captured graph must notice."""
    compiled, there = _compiled(model), copy.deepcopy(model).to(device).eval()
    forward = GraphedForward(there)
    loader = PackedLoader(compiled, model, 8, num_workers=1, pin=device == "cuda")
    for _ in range(4):
        found = torch.cat([forward(batch) for batch in loader]).cpu()
        with torch.no_grad():
            expected = copy.deepcopy(there).cpu()(compiled[:])
            for parameter in there.parameters():
                parameter.mul_(0.9)
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    assert bool(forward.captured) == (device == "cuda")


@cuda
def test_what_cannot_be_captured_runs_eagerly_with_one_warning(model: nn.Module) -> None:
    compiled, trained = _compiled(model), copy.deepcopy(model).cuda().train()

    def waits(out: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(out, y) * (2.0 if float(out.detach().sum()) > 1e9 else 1.0)

    step = Step(trained, _adam(trained, True), waits)
    loader = PackedLoader(compiled, model, 8, True, 0, pin=True)
    with pytest.warns(UserWarning, match="could not be captured") as told:
        losses = [float(step(batch)) for _ in range(3) for batch in loader]
    assert len([w for w in told if "captured" in str(w.message)]) == 1
    assert np.isfinite(losses).all() and not step.capture
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
