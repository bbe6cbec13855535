"""What is known of a peer once its code is loaded: its model and ours, with the same weights, and its batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from enfa import Policy

__all__ = ["Pairs", "Peer"]


@dataclass
class Pairs:
    """Which of their parameters and buffers is which of ours."""

    parameters: list[tuple[Tensor, Tensor, Callable[[Tensor], Tensor]]] = field(default_factory=list)
    norms: list[tuple[Any, Any]] = field(default_factory=list)

    def add(self, theirs: Tensor, ours: Tensor, turned: Callable[[Tensor], Tensor] = lambda value: value) -> None:
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
            ours.copy_(turned(theirs))
        for theirs, ours in self.norms:
            ours.running_mean.copy_(theirs.running_mean)
            ours.running_var.copy_(theirs.running_var)


@dataclass
class Peer:
    name: str
    theirs: nn.Module
    ours: nn.Module
    pairs: Pairs
    policy: Policy
    batch: Callable[[Sequence[Data]], Any]  # graphs to what their model takes
    stood_in: list[str]
