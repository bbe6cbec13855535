"""What is known of a peer once its code is loaded: its model and ours, with the same weights, and its batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from enfa import Policy
from enfa.datasets import load
from gpu_parts.cases import Case, Dataset, loss_for

__all__ = ["Pairs", "Peer", "of_case", "zinc"]


@dataclass
class Pairs:
    """Which of their parameters and buffers is which of ours."""

    # theirs, which are put one below the other where there are several; ours; and what makes theirs ours
    parameters: list[tuple[list[Tensor], Tensor, Callable[[Tensor], Tensor]]] = field(default_factory=list)
    norms: list[tuple[Any, Any]] = field(default_factory=list)

    def add(self, theirs: Tensor, ours: Tensor, turned: Callable[[Tensor], Tensor] = lambda value: value) -> None:
        self.parameters.append(([theirs], ours, turned))

    def join(self, theirs: list[Tensor], ours: Tensor, turned: Callable[[Tensor], Tensor] = lambda value: value) -> None:
        """Several tables of theirs are one of ours."""
        self.parameters.append((theirs, ours, turned))

    def same(self, theirs: Any, ours: Any) -> None:
        """Two linears or norms."""
        self.add(theirs.weight, ours.weight)
        self.add(theirs.bias, ours.bias)
        if hasattr(ours, "running_mean"):
            self.norms.append((theirs, ours))

    @torch.no_grad()
    def copy(self) -> None:
        """Their weights to ours."""
        for theirs, ours, turned in self.parameters:
            ours.copy_(turned(torch.cat(theirs) if len(theirs) > 1 else theirs[0]))
        for theirs, ours in self.norms:
            ours.running_mean.copy_(theirs.running_mean)
            ours.running_var.copy_(theirs.running_var)


@dataclass
class Peer:
    """Theirs and ours on one dataset."""

    name: str
    theirs: nn.Module
    ours: nn.Module
    pairs: Pairs
    policy: Policy
    batch: Callable[[Sequence[Data]], Any]  # graphs to what their model takes
    stood_in: list[str]
    graphs: list[Data]
    y: Tensor
    loss: Callable[[Tensor, Tensor], Tensor]  # of outputs and labels
    # of a batch: while it is entered, their sizes are known beforehand, for torch.compile and CUDA graphs
    static: Callable[[Any], AbstractContextManager[None]] = nullcontext


def zinc(data: Path, count: int) -> tuple[list[Data], Tensor, Callable[[Tensor, Tensor], Tensor]]:
    """The first graphs to train on, their labels, and the loss."""
    found = load("ZINC", data)
    graphs = [found.graphs[int(i)] for i in found.split()["train"][:count]]
    y = torch.stack([g.y.view(()) for g in graphs]).float()
    return graphs, y, lambda out, y: nn.functional.l1_loss(out.view(-1), y.view(-1))


def of_case(data: Path, case: Case, count: int) -> tuple[Dataset, list[Data], Tensor, Callable[[Tensor, Tensor], Tensor]]:
    """The graphs that benchmarks/gpu.py measures, and its loss."""
    found = Dataset(data, case)
    chosen = found.batch(count)
    return found, [found.graph(g) for g in chosen], found.targets(chosen), loss_for(found)  # type: ignore[return-value]
