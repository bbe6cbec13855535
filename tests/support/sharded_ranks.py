"""Training on a sharded dataset in two processes, which import this module by its name."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from torch import nn

import enfa

__all__ = ["rank_of_shards", "small_model", "trained"]


def small_model() -> nn.Module:
    torch.manual_seed(0)
    return enfa.DSGNN([3], 8, 1, 2, "gine", edge_channels=[3]).double()


def trained(loader: enfa.DataLoader, model: nn.Module, batch_size: int, ranks: int = 1) -> list[float]:
    """The losses of two epochs of a plain loop. Gradients are averaged over ranks, which take their parts of a batch's sum.

    No Adam: it divides gradients that are zero but for rounding, those of biases before BatchNorm, by their size.
    """
    optimiser, losses = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9), []
    for _ in range(2):
        for plan in loader:
            optimiser.zero_grad()
            loss = nn.functional.l1_loss(model(plan), plan.y, reduction="sum") * ranks / batch_size
            loss.backward()
            optimiser.step()
            losses.append(float(loss.detach()) / ranks)
    return losses


def rank_of_shards(rank: int, port: int, folder: Path, memory: int, results) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    sharded, read = enfa.ShardedDataset.open(folder, memory), []
    inner = sharded.shards.read
    sharded.shards.read = lambda number: read.append(number) or inner(number)  # type: ignore[method-assign]
    model = nn.parallel.DistributedDataParallel(small_model())
    loader = enfa.DataLoader(sharded, 7, True, seed=5, shard=(rank, 2))
    losses = trained(loader, model, 7, 2)
    results[rank] = losses, {k: v.tolist() for k, v in model.module.state_dict().items()}, len(read)
    torch.distributed.destroy_process_group()
