"""The models that are timed and compared, and one training step of them."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from enfa.datasets import Benchmark
from enfa.nn import DSGNN, DSSGNN, Step
from enfa.nn.models.base import SubgraphGNN
from enfa.plan.table import Plan

__all__ = ["build", "make_step"]


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
    wanted, weight = y.nan_to_num().to(output.dtype), known.to(output.dtype)
    return nn.functional.binary_cross_entropy_with_logits(output, wanted, weight, reduction="sum") / known.sum()


def make_step(model: nn.Module, plan: Plan) -> Callable[[], object]:
    """Forward, backward, Adam; on a GPU as ``enfa train`` does it, captured as a CUDA graph by the second call."""
    model.train()
    y = plan.y
    assert y is not None
    if next(model.parameters()).device.type == "cuda":
        adam = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True, capturable=True)
        graphed = Step(model, adam, loss_of)
        staged = graphed.stage(plan)
        return lambda: graphed(staged)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> None:
        loss_of(model(plan), y).backward()
        optimiser.step()
        optimiser.zero_grad()  # at the end: each step frees what it allocates, which is what peak memory is about

    return step
