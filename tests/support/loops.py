"""Training loops on batches of a device, eager and captured: models, batches and what is compared."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from static_models import EVERY_MODEL, graphs_for, model_for
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

import enfa
from enfa.batch.static.arriving import Arrivals
from enfa.batch.static.packed import PackedLoader
from enfa.nn.cuda import replay

SIZE = 6


def model_of(name: str = "dropout") -> nn.Module:
    """Of the package, on Rows."""
    if name in EVERY_MODEL:
        return model_for(name)
    torch.manual_seed(0)
    model = enfa.DSGNN([5, 3], 16, 2, 2, "gine", edge_channels=[8, 3], dropout=0.3)
    model.head[2].p = 0.0  # ordinary dropout, which draws on the CPU where there is no other device
    return model.double()


def compiled_for(name: str = "dropout") -> Any:
    model, graphs = model_of(name), graphs_for("gine" if name == "dropout" else name, 1, 15)
    found = enfa.compile(graphs, enfa.NodeMarking(), model, progress=False)
    found.y = torch.arange(len(graphs)) % 2
    return found


def loader_of(compiled: Any, device: str, shuffle: bool = False) -> Any:
    """Without a GPU, packed batches that are copied."""
    if device == "cuda":
        return enfa.DataLoader(compiled, SIZE, shuffle=shuffle, num_workers=0, device=device)
    return Arrivals(PackedLoader(compiled, None, SIZE, shuffle), torch.device(device))


def batches_of(compiled: Any, device: str, count: int, shuffle: bool = True) -> Iterator[Any]:
    every = loader_of(compiled, device, shuffle)
    found = (batch for _ in range(1000) for batch in every)
    return islice(found, count)


def alike(compiled: Any, device: str, count: int = 6) -> list[Any]:
    """Batches that run through the same graph."""
    found = list(batches_of(compiled, device, 4 * count, False))
    kinds = [[b for b in found if b.staged.key is a.staged.key] for a in found]
    chosen = max(kinds, key=len)[:count]
    assert len(chosen) == count
    return chosen


def replays_of(model: nn.Module) -> replay.Replays:
    return model.__dict__["_replays"]


def adam(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=0.01, eps=1e-4)


def warmed(compiled: Any, device: str, model: nn.Module) -> list[Any]:
    """Batches of one bucket, which the model has been captured on; the loss is a plain one."""
    found = list(batches_of(compiled, device, 12))
    kinds = [[b for b in found if b.staged.key is a.staged.key] for a in found]
    chosen = max(kinds, key=len)[:3]
    assert len(chosen) == 3
    for batch in chosen[:2]:
        model(batch).sum().backward()
    model.zero_grad()
    assert replays_of(model).captured == 1
    return chosen


def gradients(model: nn.Module, batch: Any) -> list[Tensor]:
    model.zero_grad()
    torch.manual_seed(9)
    out = model(batch)
    out.square().sum().backward()
    return [out.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None)]


def eager_gradients(model: nn.Module, batch: Any) -> list[Tensor]:
    """What the model gives, with its buffers as they were."""
    with enfa.eagerly():
        return gradients(copy.deepcopy(model), batch)


def assert_close(found: Any, expected: Any) -> None:
    for value, reference in zip(tree_leaves(found), tree_leaves(expected), strict=True):
        if isinstance(value, Tensor):
            torch.testing.assert_close(value, reference, rtol=1e-9, atol=1e-9)
        else:
            assert value == reference


# Models of plain tensors, whose operations can be recorded without a GPU.


class Net(nn.Module):
    """Reads a few of the arrays of a batch; ``aux`` is a layer that not every model uses."""

    def __init__(self) -> None:
        super().__init__()
        self.lin, self.head, self.aux = nn.Linear(3, 4).double(), nn.Linear(4, 2).double(), nn.Linear(4, 2).double()

    def hidden(self, bag: Any) -> Tensor:
        x = bag.x_rows.double()
        return torch.tanh(self.lin(torch.stack([x.sum(1)[:4], x.mean(1)[:4], bag.marked[:4].double()], 1)))

    def forward(self, bag: Any) -> Any:
        return self.head(self.hidden(bag))


class Normed(Net):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4).double()

    def hidden(self, bag: Any) -> Tensor:
        return self.norm(super().hidden(bag))


class Headed(Net):
    """Two outputs."""

    def forward(self, bag: Any) -> Any:
        h = self.hidden(bag)
        return self.head(h), self.aux(h)


def trained(
    model: nn.Module,
    every: list[Any],
    optimiser: Callable[..., torch.optim.Optimizer] = torch.optim.SGD,
    read: Callable[[Any], Tensor] = lambda out: out,
    before: Callable[[Any, int], Any] = lambda model, step: None,
) -> list[Tensor]:
    """Losses of a plain loop. ``read``: what the loss reads of the outputs; ``before``: is done before every step."""
    stepping, losses = optimiser(model.parameters(), lr=0.1), []
    for number, batch in enumerate(every):
        before(model, number)
        stepping.zero_grad()
        loss = read(model(batch)).square().mean()
        loss.backward()
        stepping.step()
        losses.append(loss.detach())
    return losses


@dataclass
class Outcome:
    """Of the captured one of two loops: what was replayed, and what the user was told."""

    replays: replay.Replays
    told: list[str]
    results: Any


def assert_same_loop(
    make: Callable[[], nn.Module],
    loop: Callable[[Any, list[Any]], Any],
    put: Callable[[nn.Module], nn.Module],
    every: Callable[[], list[Any]],
) -> Outcome:
    """The loop gives the same results captured and under ``enfa.eagerly()``, and leaves the same model."""
    outcomes: list[Any] = []
    for how in (enfa.eagerly, nullcontext):
        torch.manual_seed(0)
        model = put(make())
        torch.manual_seed(1)
        with warnings.catch_warnings(record=True) as told, how():
            warnings.simplefilter("always")
            results = loop(model, every())
        outcomes.append((results, list(model.state_dict().values())))
    assert_close(outcomes[1], outcomes[0])
    return Outcome(replays_of(model), [str(w.message) for w in told if "runs eagerly" in str(w.message)], results)
