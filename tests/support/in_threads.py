"""Models trained at the same time, each in a thread of its own, against the same ones trained alone."""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

import enfa

__all__ = ["assert_as_alone"]


def assert_as_alone(models: Sequence[nn.Module], plans: Sequence[enfa.Bag], optimiser: type[Any], steps: int = 300) -> None:
    """Weights and buffers after so many steps are the same bit by bit."""

    def train(model: nn.Module, plan: enfa.Bag, found: list[Tensor]) -> None:
        descent = optimiser(model.parameters(), 1e-3)
        for _ in range(steps):
            descent.zero_grad()
            model(plan).square().sum().backward()
            descent.step()
        found += [*model.parameters(), *model.buffers()]

    alone: list[list[Tensor]] = [[] for _ in models]
    together: list[list[Tensor]] = [[] for _ in models]
    for given in zip(copy.deepcopy(list(models)), plans, alone):
        train(*given)
    threads = [threading.Thread(target=train, args=given) for given in zip(models, plans, together)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for a, b in zip(alone, together):
        assert a and len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b))
