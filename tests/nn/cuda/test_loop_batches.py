"""A replayed graph sees the batch as the user left it, or is not replayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from loops import SIZE, Net, compiled_for, loader_of, model_of, trained, warmed
from torch import nn

import enfa
from enfa.batch.static.arriving import Arrivals
from enfa.batch.static.packed import PackedLoader


def test_features_that_need_gradients(device: str, on: Callable[..., nn.Module]) -> None:
    compiled, model = compiled_for("Net"), on(model_of("Net"))
    batches = warmed(compiled, device, model)
    with pytest.warns(UserWarning, match="features of its batch need gradients"):
        for batch in batches:
            batch.x_rows.requires_grad_()
            model(batch).sum().backward()
            assert batch.x_rows.grad.abs().sum() > 0


def test_arrays_that_were_replaced(device: str, on: Callable[..., nn.Module]) -> None:
    compiled, model = compiled_for("Net"), on(model_of("Net")).eval()
    batch, other, *_ = warmed(compiled, device, model)
    before = model(batch)
    batch.x_rows.mul_(2)  # in its place: part of what is copied
    with enfa.eagerly():
        expected = model(batch)
    torch.testing.assert_close(model(batch), expected, rtol=1e-9, atol=1e-9)
    assert not torch.equal(before, expected)
    batch.x_rows = batch.x_rows * 0.5
    with pytest.warns(UserWarning, match="arrays of its batch were replaced"):
        torch.testing.assert_close(model(batch), before, rtol=1e-9, atol=1e-9)
    other.graph_attr["about"] = 2 * other.graph_attr["about"]
    assert not other.untouched()


def test_labels_may_be_replaced(compiled: Any, device: str) -> None:
    loader = loader_of(compiled, device)
    for number, batch in enumerate(loader):
        assert not batch.relabelled()
        if number == 0:
            batch.y = batch.y.double()
        else:
            batch.y.add_(1)
        assert batch.relabelled() and batch.untouched() and batch.y.dtype == (torch.int64 if number else torch.float64)


class _Labelled(Net):
    """Reads labels, some way or other."""

    def __init__(self, read: Callable[[Any], Any]) -> None:
        super().__init__()
        self.read = read

    def forward(self, bag: Any) -> Any:
        return self.head(self.hidden(bag)) * self.read(bag)


LABELS: dict[str, Callable[[Any], Any]] = {
    "a method": lambda bag: bag.y.double().mean() + 1,
    "if there are any": lambda bag: 1.0 if bag.y is None else bag.y.double().mean() + 1,
    "a function": lambda bag: torch.sum(bag.y) + 1,
    "an operator": lambda bag: ((bag.y + 1) * 2)[:4, None],
    "an index": lambda bag: bag.y[:4, None] + 1,
    "a length": lambda bag: len(bag.y),
    "a power": lambda bag: (bag.y**2)[:4, None] + 1,
    "a kind": lambda bag: 2.0 if isinstance(bag.y, torch.Tensor) else 1.0,
    "a shape": lambda bag: bag.y.shape[0],
}


@pytest.mark.parametrize("way", LABELS)
def test_a_model_that_reads_labels_runs_eagerly(way: str, same_loop: Callable[..., Any]) -> None:
    def loop(model: Any, every: list[Any]) -> Any:
        for number, batch in enumerate(every):
            batch.y = batch.y + number  # no graph copies these
        return trained(model, every)

    outcome = same_loop(lambda: _Labelled(LABELS[way]), loop)
    assert outcome.replays.replayed == 0 and "it reads labels" in outcome.told[0]


def test_labels_that_were_taken_away(same_loop: Callable[..., Any]) -> None:
    def loop(model: Any, every: list[Any]) -> Any:
        every[4].y = None
        return trained(model, every)

    outcome = same_loop(lambda: _Labelled(lambda bag: 1.0 if bag.y is None else 2.0), loop)
    assert outcome.replays.replayed == 4 and outcome.told


def test_an_attribute_that_was_given_to_a_batch(same_loop: Callable[..., Any]) -> None:
    class Weighted(Net):
        def forward(self, bag: Any) -> Any:
            return super().forward(bag) * getattr(bag, "weight", 1.0)

    def loop(model: Any, every: list[Any]) -> Any:
        for number, batch in enumerate(every):
            batch.weight = float(number)
        return trained(model, every)

    outcome = same_loop(Weighted, loop)
    assert outcome.replays.replayed == 0 and outcome.told


def test_numbers_of_graphs_that_were_changed(same_loop: Callable[..., Any]) -> None:
    class Numbered(Net):
        def forward(self, bag: Any) -> Any:
            return super().forward(bag) * bag.graph_ids.double().mean()

    def loop(model: Any, every: list[Any]) -> Any:
        for number, batch in enumerate(every):
            if number > 3:
                batch.graph_ids.zero_()
        return trained(model, every)

    outcome = same_loop(Numbered, loop)
    assert outcome.replays.replayed == 3 and outcome.told


@pytest.mark.parametrize("name", ["x_rows", "mark_rows"])
def test_gradients_of_what_a_batch_holds(name: str, same_loop: Callable[..., Any]) -> None:
    class Marked(Net):
        def forward(self, bag: Any) -> Any:
            return super().forward(bag) * bag.mark_rows.double().sum() * bag.x_rows.double().sum()

    def loop(model: Any, every: list[Any]) -> Any:
        model.eval()
        found = []
        for batch in every:
            array = getattr(batch, name)
            if array.is_floating_point():
                array.requires_grad_()
            model(batch).sum().backward()
            found.append(array.grad)
        return [grad for grad in found if grad is not None]

    outcome = same_loop(Marked, loop)
    assert outcome.replays.replayed == (5 if not outcome.results else 0)


@pytest.mark.parametrize("workers", [0, 1])
def test_labels_that_changed_between_epochs(workers: int, compiled: Any) -> None:
    """Also where a loader keeps its batches, or has made some of the next epoch."""
    before = compiled.y
    packed = PackedLoader(compiled, None, SIZE, bool(workers), workers)
    try:
        for epoch in range(3):
            compiled.y = torch.full_like(before, epoch)
            found = [batch.y.clone() for batch in Arrivals(packed, torch.device("cpu"))]
            assert torch.cat(found).eq(epoch).all() and len(torch.cat(found)) == len(before)
        compiled.y += 4
        assert all(batch.y.eq(6).all() for batch in Arrivals(packed, torch.device("cpu")))
    finally:
        packed.close()
        compiled.y = before
