"""A step on batches of a device, captured or not, in one process or several, is the loop written out."""

from __future__ import annotations

import copy
import multiprocessing
import traceback
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from static_models import graphs_for
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import enfa
from enfa.batch.static.arriving import Arrivals
from enfa.batch.static.packed import PackedLoader

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=cuda)]


def _model() -> nn.Module:
    torch.manual_seed(0)
    return enfa.DSGNN([5, 3], 16, 2, 3, "gine", edge_channels=[8, 3]).double()


@pytest.fixture(scope="module")
def compiled() -> Any:
    graphs = graphs_for("gine", 1, 15)[:20]
    found = enfa.compile(graphs, enfa.NodeMarking(), _model(), progress=False)
    found.y = torch.arange(len(graphs)) % 2
    return found


def _adam(model: nn.Module, device: str) -> torch.optim.Optimizer:
    more: dict[str, Any] = {"capturable": True} if device == "cuda" else {}
    return torch.optim.Adam(model.parameters(), lr=2.0**-7, eps=1e-4, **more)  # the same in float32


OPTIONS: dict[str, dict[str, Any]] = {"plain": {}, "clipped": {"clip_norm": 0.5}, "mixed": {"autocast": torch.bfloat16}}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("device", DEVICES)
def test_a_step_is_what_it_says(options: str, device: str, compiled: Any) -> None:
    chosen, results = OPTIONS[options], []
    for written_out in (False, True):
        model = _model().to(device).train()
        model = model.float() if "autocast" in chosen else model
        optimiser = _adam(model, device)
        schedule = torch.optim.lr_scheduler.StepLR(optimiser, 2, 0.5)
        step = enfa.Step(model, optimiser, F.cross_entropy, **chosen)
        loader = enfa.DataLoader(compiled, 5, shuffle=True, device=device, num_workers=0)
        losses = []
        for _ in range(6):
            for batch in loader:
                if not written_out:
                    losses.append(step(batch))
                    continue
                optimiser.zero_grad()
                with torch.autocast(device, torch.bfloat16, enabled="autocast" in chosen), enfa.eagerly():
                    loss = F.cross_entropy(model(batch), batch.y)
                loss.backward()
                if "clip_norm" in chosen:
                    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                optimiser.step()
                losses.append(loss.detach())
            schedule.step()
        assert len(losses) == 24
        if not written_out:
            assert any(step.captured.values()) == (device == "cuda")
        results.append([torch.stack(losses).double(), *model.state_dict().values()])
    close = {"rtol": 1e-6, "atol": 1e-8} if "autocast" not in chosen else {"rtol": 1e-2, "atol": 1e-3}
    for value, reference in zip(*results, strict=True):
        torch.testing.assert_close(value, reference, **close)


@pytest.mark.parametrize("device", DEVICES)
def test_labels_that_were_replaced_are_those_of_the_loss(device: str, compiled: Any) -> None:
    """What a graph would not see runs eagerly, with a warning."""
    model = _model().to(device).train()
    seen: list[Tensor] = []

    def loss(out: Tensor, y: Tensor) -> Tensor:
        seen.append(y)
        return F.cross_entropy(out, y)

    step = enfa.Step(model, _adam(model, device), loss)
    loader = Arrivals(PackedLoader(compiled, None, 5, pin=device == "cuda"), torch.device(device))
    for _ in range(3):
        for batch in loader:
            step(batch)
    batch = next(iter(loader))
    batch.y = 1 - batch.y
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        step(batch)
    assert seen[-1] is batch.y and bool(told) == (device == "cuda")


# Several processes.


def _epochs(model: nn.Module, compiled: Any, rank: int, ranks: int, device: str, how: str) -> list[Tensor]:
    """Everything learnt in twenty steps, on this process's parts of the batches."""
    optimiser = _adam(model, device)
    step = enfa.Step(model, optimiser, F.cross_entropy, clip_norm=1.0)
    loader = enfa.DataLoader(compiled, 10, shuffle=True, shard=(rank, ranks), num_workers=0, device=device)
    for _ in range(10):
        for batch in loader:
            if how == "step":
                step(batch)
                continue
            optimiser.zero_grad()
            F.cross_entropy(model(batch), batch.y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
    return [value.cpu() for value in model.state_dict().values()]


def _process(rank: int, file: Path, compiled: Any, answers: Any) -> None:
    try:
        dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
        found = []
        for how in ("step", "loop"):
            model = DistributedDataParallel(_model().train())
            found.append([value.numpy() for value in _epochs(model, compiled, rank, 2, "cpu", how)])
        answers.put((rank, found))
        dist.barrier()
        dist.destroy_process_group()
    except BaseException:
        answers.put((rank, traceback.format_exc()))


def test_two_processes_are_one(compiled: Any, tmp_path: Path) -> None:
    """Steps that average gradients by themselves, DistributedDataParallel's own, and one process on whole batches."""
    expected = _epochs(_model().train(), compiled, 0, 1, "cpu", "loop")
    context: Any = multiprocessing.get_context("fork")
    answers = context.Queue()
    processes = [context.Process(target=_process, args=(rank, tmp_path / "group", compiled, answers)) for rank in range(2)]
    for process in processes:
        process.start()
    found = dict(answers.get(timeout=120) for _ in processes)
    for process in processes:
        process.join(30)
    for rank in range(2):
        assert not isinstance(found[rank], str), found[rank]
        for of_how in found[rank]:
            for value, reference in zip(of_how, expected, strict=True):
                torch.testing.assert_close(torch.from_numpy(value), reference, rtol=1e-9, atol=1e-9)


@cuda
def test_reductions_are_captured(compiled: Any, tmp_path: Path) -> None:
    """As far as one GPU allows: a group of one process, whose reductions NCCL does all the same."""
    expected = _epochs(_model().train(), compiled, 0, 1, "cpu", "loop")
    dist.init_process_group("nccl", init_method=f"file://{tmp_path / 'group'}", rank=0, world_size=1)
    try:
        for how in ("step", "loop"):
            model = DistributedDataParallel(copy.deepcopy(_model()).cuda().train())
            found = _epochs(model, compiled, 0, 1, "cuda", how)
            for value, reference in zip(found, expected, strict=True):
                torch.testing.assert_close(value, reference, rtol=1e-6, atol=1e-6)
    finally:
        dist.destroy_process_group()
