"""A plain training loop on batches of a device replays graphs, and is the eager loop."""

from __future__ import annotations

import copy
import gc
import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import islice
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from rerun import Rerun
from static_models import EVERY_MODEL, graphs_for, model_for
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint

import enfa
from enfa.batch.static.arriving import Arrivals
from enfa.batch.static.packed import PackedLoader
from enfa.nn.cuda import replay

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=cuda)]
SIZE = 6


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def on(device: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[nn.Module], nn.Module]:
    """A model on the device, in training; on the CPU with graphs that do their work again."""

    def put(model: nn.Module) -> nn.Module:
        there = enfa.captured(model).to(device).train()
        if device == "cpu":
            monkeypatch.setattr(replay, "recorder", lambda _: Rerun(there))
        return there

    return put


@pytest.fixture(scope="module")
def compiled() -> Any:
    return _compiled("dropout")


def _compiled(name: str) -> Any:
    model, graphs = _model(name), graphs_for("gine" if name in ("dropout", "wide") else name, 1, 15)
    found = enfa.compile(graphs, enfa.NodeMarking(), model, progress=False)
    found.y = torch.arange(len(graphs)) % 2
    return found


def _model(name: str = "dropout") -> nn.Module:
    if name in EVERY_MODEL:
        return model_for(name)
    torch.manual_seed(0)
    model = enfa.DSGNN([5, 3], 16, 2, 2, "gine", edge_channels=[8, 3], dropout=0.3)
    model.head[2].p = 0.0  # ordinary dropout, which draws on the CPU where there is no other device
    return model.double()


def _loader(compiled: Any, device: str, shuffle: bool = False) -> Any:
    """Without a GPU, packed batches that are copied."""
    if device == "cuda":
        return enfa.DataLoader(compiled, SIZE, shuffle=shuffle, num_workers=0, device=device)
    return Arrivals(PackedLoader(compiled, None, SIZE, shuffle), torch.device(device))


def _batches(compiled: Any, device: str, count: int, shuffle: bool = True) -> Iterator[Any]:
    loader = _loader(compiled, device, shuffle)
    found = (batch for _ in range(1000) for batch in loader)
    return islice(found, count)


def _of(model: nn.Module) -> replay.Replays:
    return model.__dict__["_replays"]


def _adam(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=0.01, eps=1e-4)


# Loops, as anybody would write them. Each returns what is to be the same.


def _plain(model: nn.Module, batches: Iterator[Any]) -> list[Any]:
    optimiser, found = _adam(model), []
    for batch in batches:
        optimiser.zero_grad()
        loss = F.cross_entropy(model(batch), batch.y)
        loss.backward()
        optimiser.step()
        found.append(loss.detach())
    return found


def _clipped(model: nn.Module, batches: Iterator[Any]) -> list[Any]:
    optimiser, found = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), []
    for batch in batches:
        optimiser.zero_grad(set_to_none=False)
        F.cross_entropy(model(batch), batch.y).backward()
        found.append(nn.utils.clip_grad_norm_(model.parameters(), 0.5))
        optimiser.step()
    return found


def _accumulated(model: nn.Module, batches: Iterator[Any]) -> list[Any]:
    optimiser, found = _adam(model), []
    for number, batch in enumerate(batches):
        (F.cross_entropy(model(batch), batch.y) / 4).backward()
        if number % 4 == 3:
            found += [p.grad.clone() for p in model.parameters() if p.grad is not None]
            optimiser.step()
            optimiser.zero_grad()
    return found


def _mixed(model: nn.Module, batches: Iterator[Any]) -> list[Any]:
    optimiser, found = _adam(model.float()), []
    device = next(model.parameters()).device.type
    for batch in batches:
        optimiser.zero_grad()
        with torch.autocast(device, torch.bfloat16):
            loss = F.cross_entropy(model(batch).float(), batch.y)
        loss.backward()
        optimiser.step()
        found.append(loss.detach())
    return found


def _scheduled(model: nn.Module, batches: Iterator[Any]) -> list[Any]:
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.02)
    schedule, found = torch.optim.lr_scheduler.OneCycleLR(optimiser, 0.02, total_steps=30), []
    for batch in batches:
        optimiser.zero_grad()
        loss = F.cross_entropy(model(batch), batch.y)
        loss.backward()
        optimiser.step()
        schedule.step()
        found.append(loss.detach())
    return found


def _averaged(model: nn.Module, batches: Iterator[Any]) -> list[Any]:
    optimiser, found = _adam(model), []
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=False)
    for batch in batches:
        optimiser.zero_grad()
        F.cross_entropy(model(batch), batch.y).backward()
        optimiser.step()
        average.update_parameters(model)
        average.eval()
        with torch.no_grad():
            found.append(average(batch))
    return found


def _several(model: nn.Module, batches: Iterator[Any]) -> list[Any]:
    """Losses one after the other, through the same call; and the one of another batch before either is differentiated."""
    optimiser, found = _adam(model), []
    for one, other in zip(batches, batches):
        optimiser.zero_grad()
        outs = model(one), model(other)
        F.cross_entropy(outs[0], one.y).backward(retain_graph=True)
        (0.1 * outs[0].square().mean() + F.cross_entropy(outs[1], other.y)).backward()
        optimiser.step()
        found += [out.detach() for out in outs]
    return found


LOOPS = {f.__name__[1:]: f for f in (_plain, _clipped, _accumulated, _mixed, _scheduled, _averaged, _several)}


@pytest.mark.parametrize("loop", LOOPS)
def test_every_loop_is_the_eager_one(loop: str, compiled: Any, device: str, on: Callable[..., nn.Module]) -> None:
    results = []
    for eagerly in (False, True):
        model = on(_model())
        torch.manual_seed(5)  # for the masks
        batches = _batches(compiled, device, 12)
        if eagerly:
            with enfa.eagerly():
                found = LOOPS[loop](model, batches)
            assert "_replays" not in model.__dict__
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = LOOPS[loop](model, batches)
            assert _of(model).replayed > 5 and _of(model).captured and _of(model).eager < 7
        results.append([*found, *model.state_dict().values()])
    for value, reference in zip(*results, strict=True):
        if device == "cpu":
            assert torch.equal(value, reference)
        else:
            torch.testing.assert_close(value, reference, rtol=1e-9 if value.dtype == torch.float64 else 1e-3, atol=1e-4)


FEW = ("Looped", "Told")
ANY = [pytest.param(n, marks=[] if n in FEW else cuda) for n in EVERY_MODEL]


@pytest.mark.parametrize("name", ANY)
def test_any_model(name: str, device: str, on: Callable[..., nn.Module]) -> None:
    """Outputs, gradients and buffers, in training and not."""
    compiled = _compiled(name)
    if any(n == "place" for _, n in compiled.program.needs):
        pytest.skip("a row for every node or subgraph")
    plain = _model(name).to(device)
    for part in plain.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    model = on(copy.deepcopy(plain))
    for train in (True, False):
        plain.train(train), model.train(train)
        for batch in _batches(compiled, device, 6, False):
            found = []
            for part, how in ((plain, enfa.eagerly), (model, nullcontext)):
                part.zero_grad()
                with how():
                    out = part(batch)
                out.square().sum().backward()
                found.append([out.detach(), *(p.grad for p in part.parameters()), *part.buffers()])
            for value, reference in zip(*found, strict=True):
                assert (value is None) == (reference is None)
                if value is not None:
                    torch.testing.assert_close(value, reference, rtol=1e-9, atol=1e-9)
    assert _of(model).captured >= 2


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_predictions(mode: Any, compiled: Any, device: str, on: Callable[..., nn.Module]) -> None:
    """Also after the weights have changed."""
    model = on(_model()).eval()
    for _ in range(4):
        with mode():
            found = [model(batch) for batch in _loader(compiled, device)]
            with enfa.eagerly():
                expected = [model(batch) for batch in _loader(compiled, device)]
        assert not found[0].requires_grad and found[0].is_inference() == (mode is torch.inference_mode)
        # all of them, at the end: later calls must not have written into earlier results
        torch.testing.assert_close(torch.cat(found), torch.cat(expected), rtol=1e-9, atol=1e-12)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(0.9)
    assert _of(model).replayed >= 2 * len(found)


def test_batches_stay_what_they_are(compiled: Any, device: str) -> None:
    """Also when the loader has gone on, and nobody looked at them before."""
    batches = list(_loader(compiled, device))
    model = _model().to(device).eval()
    with torch.no_grad(), enfa.eagerly():
        for batch, plan in zip(batches, enfa.DataLoader(compiled, SIZE), strict=True):
            assert isinstance(batch, enfa.Bag) and batch.num_graphs == plan.num_graphs == len(batch.y)
            assert torch.equal(batch.y.cpu(), plan.y) and torch.equal(batch.graph_ids.cpu(), plan.graph_ids)
            assert batch.to(device) is batch
            torch.testing.assert_close(model(batch).cpu(), copy.deepcopy(model).cpu()(plan), rtol=1e-9, atol=1e-9)


def _warmed(compiled: Any, device: str, model: nn.Module) -> list[Any]:
    """Batches of one bucket, which the model has been captured on; the loss is a plain one."""
    found = list(_batches(compiled, device, 12))
    alike = [[b for b in found if b.staged.key is a.staged.key] for a in found]
    batches = max(alike, key=len)[:3]
    assert len(batches) == 3
    for batch in batches[:2]:
        model(batch).sum().backward()
    model.zero_grad()
    assert _of(model).captured == 1
    return batches


def _gradients(model: nn.Module, batch: Any) -> list[Tensor]:
    model.zero_grad()
    torch.manual_seed(9)
    out = model(batch)
    out.square().sum().backward()
    return [out.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None)]


def _eager(model: nn.Module, batch: Any) -> list[Tensor]:
    """What the model gives, with its buffers as they were."""
    with enfa.eagerly():
        return _gradients(copy.deepcopy(model), batch)


def _assert_close(found: list[Tensor], expected: list[Tensor]) -> None:
    for value, reference in zip(found, expected, strict=True):
        torch.testing.assert_close(value, reference, rtol=1e-9, atol=1e-9)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "storage": lambda model: setattr(model.head[3].weight, "data", model.head[3].weight.data * 2),
    "a parameter": lambda model: setattr(model.head[3], "weight", nn.Parameter(model.head[3].weight.data * 2)),
    "a module": lambda model: setattr(model, "head", nn.Sequential(nn.Linear(16, 2)).to(model.head[3].weight)),
    "values": lambda model: model.load_state_dict({k: v * 2 for k, v in model.state_dict().items()}),
    "dropout": lambda model: setattr(model.layers[1].dropout, "p", 0.7),
    "frozen": lambda model: model.layers[0].requires_grad_(False),
    "evaluation": lambda model: model.eval(),
    "a part in evaluation": lambda model: model.layers[1].eval(),
    "precision": lambda model: model.float().double(),
    "copied": lambda model: copy.deepcopy(model),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_the_model_is_noticed(change: str, compiled: Any, device: str, on: Callable[..., nn.Module]) -> None:
    model = on(_model())
    batches = _warmed(compiled, device, model)
    other = CHANGES[change](model)
    model = other if change == "copied" else model
    before = _of(model).replayed
    for batch in batches:
        expected = _eager(model, batch)
        _assert_close(_gradients(model, batch), expected)
    assert _of(model).replayed - before >= 2 and _of(model).captured == (1 if change in ("values", "copied") else 2)


def test_statistics_count_every_call_once(compiled: Any, device: str, on: Callable[..., nn.Module]) -> None:
    model = on(_model())
    norm = next(m for m in model.modules() if isinstance(m, nn.BatchNorm1d))
    for number, batch in enumerate(_batches(compiled, device, 8), 1):
        model(batch)
        assert int(norm.num_batches_tracked) == number


def test_calls_that_wait_for_their_backward_passes(compiled: Any, device: str, on: Callable[..., nn.Module]) -> None:
    """Four places, and one more call, which runs eagerly with a warning."""
    model = on(_model()).eval()
    batches = (_warmed(compiled, device, model) * 5)[:5]
    expected = [_eager(model, batch) for batch in batches]
    model.zero_grad()
    with pytest.warns(UserWarning, match="4 calls of it wait"):
        outs = [model(batch) for batch in batches]
    for out, values in zip(outs, expected):
        torch.testing.assert_close(out, values[0], rtol=1e-9, atol=1e-9)
    parameters = [p for p in model.parameters() if p.requires_grad]
    for number in (3, 0, 4, 1, 2):
        grads = torch.autograd.grad(outs[number].square().sum(), parameters, allow_unused=True)
        _assert_close([g for g in grads if g is not None], expected[number][1:])
    before = _of(model).captured
    _assert_close(_gradients(model, batches[0]), expected[0])
    assert _of(model).captured == before == 4  # a place is free again


def test_calls_whose_results_are_dropped_keep_no_place(compiled: Any, device: str, on: Callable[..., nn.Module]) -> None:
    model = on(_model())
    batches = _warmed(compiled, device, model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for batch in batches * 3:
            out = model(batch)
    del out
    gc.collect()
    assert len(_of(model).places) == 2  # a result lives until the next one has its name


def test_a_second_backward_pass_is_refused_as_ever(compiled: Any, device: str, on: Callable[..., nn.Module]) -> None:
    model = on(_model())
    batch, *_ = _warmed(compiled, device, model)
    loss = model(batch).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        loss.backward()
    grads = torch.autograd.grad(model(batch).square().sum(), model.head[3].weight, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grads[0].sum().backward()


def test_activations_that_are_gone_are_refused(compiled: Any, device: str, on: Callable[..., nn.Module]) -> None:
    model = on(_model())
    first, second, *_ = _warmed(compiled, device, model)
    loss = model(first).sum()
    loss.backward(retain_graph=True)
    loss.backward(retain_graph=True)
    model(second)
    with pytest.raises(RuntimeError, match="before a later call that took its memory"):
        loss.backward()


def test_weights_that_changed_before_the_backward_pass_are_refused(
    compiled: Any, device: str, on: Callable[..., nn.Module]
) -> None:
    model = on(_model())
    first, *_ = _warmed(compiled, device, model)
    loss = model(first).sum()
    with torch.no_grad():
        model.head[3].weight.mul_(2)
    with pytest.raises(RuntimeError, match=r"Expected weights as they were .* modified by an inplace operation"):
        loss.backward()
    loss = model(first).sum()
    with torch.no_grad():
        next(model.parameters()).mul_(2)  # which autograd itself looks after
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_hooks_of_parameters_are_called_once(compiled: Any, device: str, on: Callable[..., nn.Module]) -> None:
    model, calls = on(_model()), []
    weight = model.head[3].weight
    weight.register_hook(lambda grad: calls.append("hook") or 2 * grad)
    weight.register_post_accumulate_grad_hook(lambda p: calls.append("after"))
    batches = _warmed(compiled, device, model)
    calls.clear()
    for batch in batches:
        expected = _eager(model, batch)  # a copy has no hooks
        found = _gradients(model, batch)
        place = 1 + [n for n, _ in model.named_parameters()].index("head.3.weight")
        torch.testing.assert_close(found.pop(place), 2 * expected.pop(place), rtol=1e-9, atol=1e-9)
        _assert_close(found, expected)
    assert calls == ["hook", "after"] * len(batches)


class _Odd(nn.Module):
    """Does what a graph cannot do again."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.inner, self.what, self.calls = _model(), what, 0
        self.scale = torch.ones((), dtype=torch.float64, requires_grad=True)  # no parameter

    def forward(self, bag: Any) -> Any:
        out = self.inner(bag)
        if self.what == "counts":
            self.calls += 1
        if self.what == "keeps":
            self.last = out
        if self.what == "draws":
            out = out * float(torch.rand(()) + 1)
        if self.what == "leaf":
            out = out * self.scale.to(out.device)
        return (out, 3) if self.what == "number" else out


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("counts", "changes _Odd.calls"), ("keeps", "changes _Odd.last"), ("draws", "random numbers on the CPU"),
        ("leaf", "none of its parameters"), ("number", "it returns int"), ("hook", "DSGNN .inner. has hooks"),
        ("checkpoint", "saves for its backward"),
    ],
)  # fmt: skip
def test_what_cannot_be_captured_runs_eagerly_with_one_warning(
    what: str, why: str, compiled: Any, device: str, on: Callable[..., nn.Module]
) -> None:
    model = on(_Odd(what))
    called: list[int] = []
    if what == "hook":
        model.inner.register_forward_hook(lambda *_: called.append(1))
    with pytest.warns(UserWarning, match=why) as told:
        for number, batch in enumerate(_batches(compiled, device, 12, False), 1):
            run = (lambda b: checkpoint(model, b, use_reentrant=False)) if what == "checkpoint" else model
            out = run(batch)
            out = out[0] if what == "number" else out
            out.sum().backward()
            if what == "counts":
                assert model.calls >= number
    assert len([w for w in told if "runs eagerly" in str(w.message)]) == 1
    eager = 24 if what == "checkpoint" else 12  # which runs it twice
    assert _of(model).replayed == 0 and _of(model).eager == eager and len(called) in (0, 12)


def test_features_that_need_gradients(device: str, on: Callable[..., nn.Module]) -> None:
    compiled, model = _compiled("Net"), on(_model("Net"))
    batches = _warmed(compiled, device, model)
    with pytest.warns(UserWarning, match="features of its batch need gradients"):
        for batch in batches:
            batch.x_rows.requires_grad_()
            model(batch).sum().backward()
            assert batch.x_rows.grad.abs().sum() > 0


def test_arrays_that_were_replaced(device: str, on: Callable[..., nn.Module]) -> None:
    compiled, model = _compiled("Net"), on(_model("Net")).eval()
    batch, other, *_ = _warmed(compiled, device, model)
    before = model(batch)
    batch.x_rows.mul_(2)  # in its place: part of what is copied
    with enfa.eagerly():
        expected = model(batch)
    torch.testing.assert_close(model(batch), expected, rtol=1e-9, atol=1e-9)
    assert not torch.equal(before, expected)
    batch.x_rows = batch.x_rows * 0.5
    with pytest.warns(UserWarning, match="arrays of its batch were replaced"):
        torch.testing.assert_close(model(batch), before, rtol=1e-9, atol=1e-9)
    other.graph_attr["about"] = 2 * other.graph_attr["about"]
    assert not other.untouched()


def test_reentrant_checkpoints_are_refused_as_ever(compiled: Any, device: str, on: Callable[..., nn.Module]) -> None:
    model = on(_model())
    batch, *_ = _warmed(compiled, device, model)
    start = torch.zeros((), dtype=torch.float64, device=device, requires_grad=True)
    with pytest.raises(TypeError, match="checkpoint with use_reentrant=False"):
        checkpoint(lambda zero: model(batch) + zero, start, use_reentrant=True)


def test_a_captured_module_is_the_module(compiled: Any) -> None:
    model = model_for("Net")
    there = enfa.captured(model)
    assert isinstance(there, type(model)) and enfa.captured(there) is there and type(there).__name__ == "Net"
    assert list(there.state_dict()) == list(model.state_dict()) and list(there.parameters()) == list(model.parameters())
    assert not there.eval().training and not model.training
    there.register_forward_hook(lambda *_: None)
    assert model._forward_hooks
    model._forward_hooks.clear()
    there.float()
    assert all(p.dtype == torch.float32 for p in model.parameters())
    own = _model()
    assert enfa.captured(own) is own
    other = copy.deepcopy(there)
    assert type(other) is type(there) and next(other.parameters()) is not next(there.parameters())
    with pytest.raises(TypeError, match=r"Expected a torch.nn.Module to capture, got str"):
        enfa.captured("model")  # type: ignore[arg-type]


def test_a_captured_module_can_be_saved() -> None:
    model = enfa.captured(nn.Linear(2, 3))
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    again = torch.load(file, weights_only=False)
    assert type(again) is type(model) and torch.equal(again.weight, model.weight)


def test_labels_may_be_replaced(compiled: Any, device: str) -> None:
    loader = _loader(compiled, device)
    for number, batch in enumerate(loader):
        assert not batch.relabelled()
        if number == 0:
            batch.y = batch.y.double()
        else:
            batch.y.add_(1)
        assert batch.relabelled() and batch.untouched() and batch.y.dtype == (torch.int64 if number else torch.float64)
