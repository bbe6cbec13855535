"""A plain training loop on batches of a device replays graphs, and is the eager loop."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from loops import SIZE, adam, batches_of, compiled_for, loader_of, model_of, replays_of
from static_models import EVERY_MODEL
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import enfa

# Loops, as anybody would write them. Each returns what is to be the same.


def _plain(model: nn.Module, batches: Iterator[Any]) -> list[Any]:
    optimiser, found = adam(model), []
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
    optimiser, found = adam(model), []
    for number, batch in enumerate(batches):
        (F.cross_entropy(model(batch), batch.y) / 4).backward()
        if number % 4 == 3:
            found += [p.grad.clone() for p in model.parameters() if p.grad is not None]
            optimiser.step()
            optimiser.zero_grad()
    return found


def _mixed(model: nn.Module, batches: Iterator[Any]) -> list[Any]:
    optimiser, found = adam(model.float()), []
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
    optimiser, found = adam(model), []
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
    optimiser, found = adam(model), []
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
        model = on(model_of())
        torch.manual_seed(5)  # for the masks
        batches = batches_of(compiled, device, 12)
        if eagerly:
            with enfa.eagerly():
                found = LOOPS[loop](model, batches)
            assert "_replays" not in model.__dict__
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = LOOPS[loop](model, batches)
            assert replays_of(model).replayed > 5 and replays_of(model).captured and replays_of(model).eager < 7
        results.append([*found, *model.state_dict().values()])
    for value, reference in zip(*results, strict=True):
        if device == "cpu":
            assert torch.equal(value, reference)
        else:
            torch.testing.assert_close(value, reference, rtol=1e-9 if value.dtype == torch.float64 else 1e-3, atol=1e-4)


cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
FEW = ("Looped", "Told")
ANY = [pytest.param(n, marks=[] if n in FEW else cuda) for n in EVERY_MODEL]


@pytest.mark.parametrize("name", ANY)
def test_any_model(name: str, device: str, on: Callable[..., nn.Module]) -> None:
    """Outputs, gradients and buffers, in training and not."""
    compiled = compiled_for(name)
    if any(n == "place" for _, n in compiled.program.needs):
        pytest.skip("a row for every node or subgraph")
    plain = model_of(name).to(device)
    for part in plain.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    model = on(copy.deepcopy(plain))
    for train in (True, False):
        plain.train(train), model.train(train)
        for batch in batches_of(compiled, device, 6, False):
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
    assert replays_of(model).captured >= 2


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_predictions(mode: Any, compiled: Any, device: str, on: Callable[..., nn.Module]) -> None:
    """Also after the weights have changed."""
    model = on(model_of()).eval()
    for _ in range(4):
        with mode():
            found = [model(batch) for batch in loader_of(compiled, device)]
            with enfa.eagerly():
                expected = [model(batch) for batch in loader_of(compiled, device)]
        assert not found[0].requires_grad and found[0].is_inference() == (mode is torch.inference_mode)
        # all of them, at the end: later calls must not have written into earlier results
        torch.testing.assert_close(torch.cat(found), torch.cat(expected), rtol=1e-9, atol=1e-12)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(0.9)
    assert replays_of(model).replayed >= 2 * len(found)


def test_batches_stay_what_they_are(compiled: Any, device: str) -> None:
    """Also when the loader has gone on, and nobody looked at them before."""
    batches = list(loader_of(compiled, device))
    model = model_of().to(device).eval()
    with torch.no_grad(), enfa.eagerly():
        for batch, plan in zip(batches, enfa.DataLoader(compiled, SIZE), strict=True):
            assert isinstance(batch, enfa.Bag) and batch.num_graphs == plan.num_graphs == len(batch.y)
            assert torch.equal(batch.y.cpu(), plan.y) and torch.equal(batch.graph_ids.cpu(), plan.graph_ids)
            assert batch.to(device) is batch
            torch.testing.assert_close(model(batch).cpu(), copy.deepcopy(model).cpu()(plan), rtol=1e-9, atol=1e-9)


def test_statistics_count_every_call_once(compiled: Any, device: str, on: Callable[..., nn.Module]) -> None:
    model = on(model_of())
    norm = next(m for m in model.modules() if isinstance(m, nn.BatchNorm1d))
    for number, batch in enumerate(batches_of(compiled, device, 8), 1):
        model(batch)
        assert int(norm.num_batches_tracked) == number
