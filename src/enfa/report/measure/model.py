"""The models that are timed and compared, and one training step of them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from enfa.datasets import Benchmark
from enfa.nn import DSGNN, DSSGNN
from enfa.nn.models.base import SubgraphGNN
from enfa.plan.table import Plan

__all__ = ["build", "loss_of", "make_step"]


def build(data: Benchmark, width: int, layers: int, conv: str, context: str | None, jk: str = "last") -> SubgraphGNN:
    """A subgraph GNN for a dataset, its weights drawn with seed 0."""
    torch.manual_seed(0)
    if context is None:
        return DSGNN(data.in_channels, width, data.num_outputs, layers, conv, jk=jk)
    return DSSGNN(data.in_channels, width, data.num_outputs, layers, conv, context, jk=jk)


def loss_of(output: Tensor, y: Tensor) -> Tensor:
    """Cross entropy for classes; binary cross entropy over what was measured for yes/no tasks."""
    if not y.is_floating_point():
        return nn.functional.cross_entropy(output, y)
    y = y.reshape(output.shape)
    known = ~y.isnan()
    return nn.functional.binary_cross_entropy_with_logits(output[known], y[known].to(output.dtype))


def make_step(model: nn.Module, plan: Plan, y: Tensor) -> Callable[[], None]:
    """Forward, backward, Adam."""
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.train()

    def step() -> None:
        loss_of(model(plan), y).backward()
        optimiser.step()
        optimiser.zero_grad()  # at the end: each step frees what it allocates, which is what peak memory is about

    return step
