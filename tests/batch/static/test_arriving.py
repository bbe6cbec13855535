"""Batches on their way to a device, by loaders that are told of one."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch

import enfa
from enfa.batch import loader as of_loader
from enfa.batch.batches import Batches
from enfa.batch.static.arriving import OnDevice
from enfa.batch.static.packed import PackedLoader
from enfa.testing import random_graphs


def _compiled(**options: Any) -> Any:
    torch.manual_seed(0)
    model = enfa.DSGNN(3, 8, 2, 2, **options)
    found = enfa.compile(random_graphs(21, 7, seed=3, channels=3), enfa.NodeMarking(), model, progress=False)
    found.y = torch.arange(21)
    return found, model


@pytest.fixture
def as_if(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU as if it were a GPU."""
    monkeypatch.setattr(of_loader, "_checked", lambda device: device and torch.device(device))
    packed = PackedLoader.__init__
    monkeypatch.setattr(PackedLoader, "__init__", lambda self, *args, pin, **more: packed(self, *args, **more))


@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"drop_last": True}, {"shuffle": True, "shard": (1, 2)}])
@pytest.mark.parametrize("workers", [0, 2])
def test_the_batches_are_those_of_a_loader_without_a_device(options: dict[str, Any], workers: int, as_if: None) -> None:
    compiled, model = _compiled()
    # a last batch of one graph, of which the second process has none
    there = enfa.DataLoader(compiled, 5, num_workers=workers, device="cpu", **options)
    here = enfa.DataLoader(compiled, 5, **options)
    for _ in range(3):
        assert len(there) == len(here)
        for batch, plan in zip(there, here, strict=True):
            assert isinstance(batch, OnDevice) and batch.num_graphs == plan.num_graphs
            assert torch.equal(batch.y, plan.y) and torch.equal(batch.graph_ids, plan.graph_ids)
            if plan.num_graphs > 1:
                torch.testing.assert_close(model.eval()(batch), model(plan), rtol=1e-5, atol=1e-6)
    assert there.packed.unpadded <= 3 and there.sampled.epoch == 3
    there.close()


@pytest.mark.parametrize(
    ("options", "of_model", "why"),
    [
        ({"max_rows": 500}, {}, "got max_rows"),
        ({}, {"readout": "node"}, "bag.each"),
        ({"pad": False}, {}, None),
    ],
)  # fmt: skip
def test_what_cannot_be_padded_comes_as_it_is(options: Any, of_model: Any, why: str | None, as_if: None) -> None:
    compiled, model = _compiled(**of_model)
    if "readout" in of_model:
        compiled.y = None
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        there = enfa.DataLoader(compiled, 5, num_workers=0, device="cpu", **options)
        assert len(told) == (why is not None) and all(why in str(w.message) for w in told)
        more = {name: value for name, value in options.items() if name != "pad"}
        with torch.no_grad():
            for batch, plan in zip(there, enfa.DataLoader(compiled, 5, **more), strict=True):
                assert batch.staged.key is None and batch.num_nodes == plan.num_nodes
                torch.testing.assert_close(model.eval()(batch), model(plan), rtol=1e-5, atol=1e-6)
        assert len(told) == (why is not None)


def test_a_device_that_is_not_there_is_refused() -> None:
    compiled, _ = _compiled()
    assert type(next(iter(enfa.DataLoader(compiled, 5, device="cpu")))) is enfa.Bag
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match=r"Expected a GPU that torch can use, or the CPU, got device='cuda'"):
            enfa.DataLoader(compiled, 5, device="cuda")
    with pytest.raises(ValueError, match=r"got device='meta'"):
        enfa.DataLoader(compiled, 5, device="meta")


def test_parts_of_batches() -> None:
    sampled = Batches(np.arange(7), 4, False, 0, False, None, None, (1, 3))
    assert [part.tolist() for part in sampled.parts()] == [[1], [5]]
