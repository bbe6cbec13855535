"""Numbers that Python draws are drawn in every call: a model that draws them is not replayed."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from loops import Net, alike, assert_close, replays_of, trained
from torch import nn
from torch.utils.checkpoint import checkpoint

import enfa

SOURCES: dict[str, Callable[[Any], float]] = {
    "torch": lambda model: float(torch.rand(())),
    "random": lambda model: random.random(),
    "numpy": lambda model: float(np.random.rand()),
    "a torch.Generator": lambda model: float(torch.rand((), generator=model.torch)),
    "a random.Random": lambda model: model.random.random(),
    "a numpy.random.Generator": lambda model: model.numpy.random(),
    "a numpy.random.RandomState": lambda model: model.old.rand(),
    "one in a list": lambda model: model.several[0].random(),
}


class _Drawing(Net):
    def __init__(self, source: str) -> None:
        super().__init__()
        self.source, self.torch = SOURCES[source], torch.Generator().manual_seed(0)
        self.random, self.numpy, self.old = random.Random(0), np.random.default_rng(0), np.random.RandomState(0)
        self.several = [random.Random(0)]

    def forward(self, bag: Any) -> Any:
        drop = self.source(self) < 0.5  # a layer, say
        h = self.hidden(bag)
        return self.head(h) if drop else self.head(h + torch.tanh(self.aux(h)).sum())


@pytest.mark.parametrize("source", SOURCES)
def test_a_model_that_draws_numbers_in_python_runs_eagerly(source: str, same_loop: Callable[..., Any]) -> None:
    """And draws the same: a rehearsal leaves every generator as it was."""

    def loop(model: Any, every: list[Any]) -> Any:
        random.seed(0)
        np.random.seed(0)
        return trained(model, every)

    outcome = same_loop(lambda: _Drawing(source), loop)
    assert outcome.replays.replayed == 0
    assert len(outcome.told) == 1 and "draws random numbers on the CPU" in outcome.told[0]


class _Checkpointed(nn.Module):
    """Its layers are computed again in the backward pass, with dropout on Rows."""

    def __init__(self, checkpointed: bool) -> None:
        super().__init__()
        edges = {"edge_channels": [8, 3]}
        self.inner = enfa.DSGNN([5, 3], 8, 2, 2, "gine", dropout=0.4, norm=None, **edges).double()
        self.inner.head[2].p = 0.0
        self.checkpointed = checkpointed

    def forward(self, bag: Any) -> Any:
        inner = self.inner
        edge, h = inner.edge_encoder(bag), inner.encoder(bag)
        for layer in inner.layers:
            h = checkpoint(layer, bag, h, edge, use_reentrant=False) if self.checkpointed else layer(bag, h, edge)
        return inner.head(inner._read_out(bag, h))


@pytest.mark.parametrize("checkpointed", [True, False])
def test_masks_are_those_of_the_forward_pass(
    checkpointed: bool, compiled: Any, device: str, on: Callable[[nn.Module], nn.Module]
) -> None:
    results = []
    for how in (enfa.eagerly, nullcontext):
        torch.manual_seed(0)
        model, found = on(_Checkpointed(checkpointed)), []
        with how():
            for batch in alike(compiled, device, 4):
                model.zero_grad()
                torch.manual_seed(3)
                if checkpointed and how is nullcontext and len(found) == 1:
                    with pytest.warns(UserWarning, match="it checkpoints dropout"):
                        out = model(batch)
                else:
                    out = model(batch)
                out.square().sum().backward()
                found.append([out.detach(), *(p.grad for p in model.parameters() if p.grad is not None)])
        results.append(found)
    assert_close(*results)
    assert replays_of(model).replayed == (0 if checkpointed else 3)
