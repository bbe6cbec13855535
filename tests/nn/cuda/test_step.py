"""A step on batches of a device, captured or not, in one process or several, is the loop written out."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from static_models import graphs_for
from torch import Tensor, nn
from torch import multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel
from two_steps import HOW, OPTIMISERS, epochs, ranked, small_model

import enfa
from enfa.batch.static.arriving import Arrivals
from enfa.batch.static.packed import PackedLoader

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=cuda)]


@pytest.fixture(scope="module")
def compiled() -> Any:
    graphs = graphs_for("gine", 1, 15)[:20]
    found = enfa.compile(graphs, enfa.NodeMarking(), small_model(), progress=False)
    found.y = torch.arange(len(graphs)) % 2
    return found


def _adam(model: nn.Module, device: str) -> torch.optim.Optimizer:
    return OPTIMISERS["adam"](model.parameters(), device)


def test_what_a_step_is_not_made_of(compiled: Any) -> None:
    model = small_model()
    optimiser, loss = _adam(model, "cpu"), nn.CrossEntropyLoss()
    for wrong, got in (((model, loss, optimiser), "CrossEntropyLoss, Adam"), ((model, optimiser, 0.1), "Adam, float")):
        with pytest.raises(TypeError, match=rf"^Expected enfa.Step\(model, optimiser, loss\), got DSGNN, {got}$"):
            enfa.Step(*wrong)


def test_graphs_without_labels() -> None:
    model = small_model()
    plan = enfa.make_plan(graphs_for("gine", 1, 15)[:3], enfa.NodeMarking(), model)
    plan.y = None
    with pytest.raises(ValueError, match=r"Expected graphs with labels 'y' .*: set compiled.y = "):
        enfa.Step(model, _adam(model, "cpu"), F.cross_entropy)(plan)


OPTIONS: dict[str, dict[str, Any]] = {"plain": {}, "clipped": {"clip_norm": 0.5}, "mixed": {"autocast": torch.bfloat16}}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("device", DEVICES)
def test_a_step_is_what_it_says(options: str, device: str, compiled: Any) -> None:
    chosen, results = OPTIONS[options], []
    for written_out in (False, True):
        model = small_model().to(device).train()
        model = model.float() if "autocast" in chosen else model
        optimiser = _adam(model, device)
        schedule = torch.optim.lr_scheduler.StepLR(optimiser, 2, 0.5)
        step = enfa.Step(model, optimiser, F.cross_entropy, **chosen)
        loader = enfa.DataLoader(compiled, 5, shuffle=True, device=device, num_workers=0)
        losses = []
        for _ in range(3):
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
        assert len(losses) == 12
        if not written_out:
            assert any(step.captured.values()) == (device == "cuda")
        results.append([torch.stack(losses).double(), *model.state_dict().values()])
    close = {"rtol": 1e-6, "atol": 1e-8} if "autocast" not in chosen else {"rtol": 1e-2, "atol": 1e-3}
    for value, reference in zip(*results, strict=True):
        torch.testing.assert_close(value, reference, **close)


@pytest.mark.parametrize("device", DEVICES)
def test_labels_that_were_replaced_are_those_of_the_loss(device: str, compiled: Any) -> None:
    """What a graph would not see runs eagerly, with a warning."""
    model = small_model().to(device).train()
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


def test_two_processes_are_one(compiled: Any, tmp_path: Path) -> None:
    """Steps that average gradients by themselves, DistributedDataParallel's own, and one process on whole batches."""
    compiled.save(tmp_path / "graphs.enfa")
    expected = epochs(small_model().train(), compiled, 0, 1, "cpu", "loop", "adam")
    # a fork, which has everything imported, unless autograd has threads for a GPU, which bear none; this process is the other
    context: Any = mp.get_context("spawn" if torch.cuda.is_available() else "fork")
    other = context.Process(target=ranked, args=(1, tmp_path))
    other.start()
    try:
        found = ranked(0, tmp_path)
    finally:
        other.join(60)
    assert other.exitcode == 0
    for learnt in (*found, *torch.load(tmp_path / "1.pt")):
        for value, reference in zip(learnt, expected, strict=True):
            torch.testing.assert_close(value, reference, rtol=1e-9, atol=1e-9)


@cuda
@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_reductions_are_captured(optimiser: str, compiled: Any, tmp_path: Path) -> None:
    """As far as one GPU allows: a group of one process, whose reductions NCCL does all the same.

    Against the same GPU without a group, and against the CPU by SGD: an Adam that can be captured has its bias corrections in
    float32, and after twenty steps of that, weights differ by 1e-4 from those of the CPU's Adam.
    """
    expected = {how: epochs(small_model().cuda().train(), compiled, 0, 1, "cuda", how, optimiser) for how in HOW}
    if optimiser == "sgd":
        expected["cpu"] = epochs(small_model().train(), compiled, 0, 1, "cpu", "loop", optimiser)
    dist.init_process_group("nccl", init_method=f"file://{tmp_path / 'group'}", rank=0, world_size=1)
    try:
        for how in HOW:
            model = DistributedDataParallel(small_model().cuda().train())
            found = epochs(model, compiled, 0, 1, "cuda", how, optimiser)
            for reference in expected.values():
                for value, other in zip(found, reference, strict=True):
                    torch.testing.assert_close(value, other, rtol=1e-6, atol=1e-6)
    finally:
        dist.destroy_process_group()


def test_the_old_name_warns() -> None:
    model = nn.Linear(2, 2)
    with pytest.warns(DeprecationWarning, match="is called enfa.Step now"):
        step = enfa.nn.GraphedStep(model, torch.optim.SGD(model.parameters()), nn.functional.mse_loss)
    assert isinstance(step, enfa.Step)
