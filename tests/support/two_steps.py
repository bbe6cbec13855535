"""Steps of training on parts of batches, in a process that is told by arguments which; it imports this module by its name."""

from __future__ import annotations

import gc
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import enfa

__all__ = ["HOW", "OPTIMISERS", "epochs", "ranked", "small_model"]

HOW = ("step", "loop")
OPTIMISERS: dict[str, Any] = {
    # fused, because the other reads its rate, a tensor, on the CPU
    "sgd": lambda parameters, device: torch.optim.SGD(parameters, lr=2.0**-5, momentum=0.5, fused=device == "cuda"),
    # an epsilon that keeps gradients of zero from deciding; the rate is the same in float32
    "adam": lambda parameters, device: torch.optim.Adam(parameters, lr=2.0**-7, eps=1e-4, capturable=device == "cuda"),
}


def small_model() -> nn.Module:
    torch.manual_seed(0)
    return enfa.DSGNN([5, 3], 16, 2, 2, "gine", edge_channels=[8, 3]).double()


def epochs(model: nn.Module, compiled: Any, rank: int, ranks: int, device: str, how: str, optimiser: str) -> list[Tensor]:
    """Everything learnt in some steps, on this process's parts of the batches."""
    learner = OPTIMISERS[optimiser](model.parameters(), device)
    step = enfa.Step(model, learner, F.cross_entropy, clip_norm=1.0)
    loader = enfa.DataLoader(compiled, 10, shuffle=True, shard=(rank, ranks), num_workers=0, device=device)
    for _ in range(5):
        for batch in loader:
            if how == "step":
                step(batch)
                continue
            learner.zero_grad()
            F.cross_entropy(model(batch), batch.y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            learner.step()
    assert any(step.captured.values()) == (device == "cuda" and how == "step")
    return [value.cpu() for value in model.state_dict().values()]


def ranked(rank: int, folder: Path) -> list[list[Tensor]]:
    """What one of two processes learns: by steps that average gradients by themselves, and by DistributedDataParallel's own."""
    compiled = enfa.load_compiled(folder / "graphs.enfa")
    dist.init_process_group("gloo", f"file://{folder / 'group'}", timedelta(seconds=90), 2, rank)
    try:
        parallel = [DistributedDataParallel(small_model().train()) for _ in HOW]
        found = [epochs(model, compiled, rank, 2, "cpu", how, "adam") for model, how in zip(parallel, HOW)]
        # the group's threads are idle, and no model holds it: ending it with work under way can wait for itself for ever
        dist.barrier()
        del parallel
        gc.collect()
    finally:
        dist.destroy_process_group()
    if rank:
        torch.save(found, folder / f"{rank}.pt")
    return found
