"""Loaders cut batches out of runs where they can; tests/plan/cutting compares what comes out number for number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import enfa
from enfa.batch.static.packed import PackedLoader
from enfa.nn.convs import make_conv
from enfa.plan.cutting.cut import Cutter
from enfa.plan.slicing.alone import rows_by_graph
from enfa.testing import random_graphs


def _random(count: int) -> list[Data]:
    return random_graphs(count, 12, channels=[5, 3], edge_channels=[4, 3], seed=2)


MODELS = {"last": enfa.DSGNN([5, 3], 6, 2, 3), "all tables": enfa.DSGNN([5, 3], 6, 2, 3, jk="concat", readout="mean")}


def _check(loader: enfa.batch.PackedLoader, model: enfa.DSGNN, compiled: enfa.CompiledDataset) -> None:
    for packed in loader:
        assert packed.bucket is not None
        torch.testing.assert_close(model(packed.plan), model(compiled[packed.graphs]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_the_loader_cuts(name: str, tmp_path: Path) -> None:
    """Also what was stored, has fewer layers, or was extended: rows of a graph do not lie side by side then."""
    model = MODELS[name].eval()
    made = enfa.compile(_random(12), enfa.NodeMarking(), model, progress=False)
    made.save(tmp_path / "x.enfa")
    loaded = enfa.load_compiled(tmp_path / "x.enfa", policy=enfa.NodeMarking())
    for compiled in (made, loaded):
        for _ in range(2):
            loader = enfa.batch.PackedLoader(compiled, None, 4, shuffle=True)
            assert loader._write._cutter is not None
            _check(loader, model, compiled)
            compiled.extend(_random(3))
    fewer = enfa.DSGNN([5, 3], 6, 2, 2).eval()
    shorter = enfa.compile(_random(12), enfa.NodeMarking(), MODELS["last"], progress=False).first_layers(2)
    loader = enfa.batch.PackedLoader(shorter, None, 4)
    assert loader._write._cutter is not None
    _check(loader, fewer, shorter)


def test_loaders_of_one_dataset_share_a_cutter_until_it_is_extended() -> None:
    """For a large dataset it takes gigabytes, and there is a loader for each part of a split."""
    model = MODELS["last"].eval()
    compiled = enfa.compile(_random(12), enfa.NodeMarking(), model, progress=False)
    parts = [enfa.batch.PackedLoader(compiled, None, 3, graphs=g) for g in ([0, 1, 2, 5, 7, 8], [3, 4, 6])]
    assert parts[0]._write._cutter is parts[1]._write._cutter is not None
    for pair in zip(*parts):  # in turns, out of the same scratch
        _check(pair, model, compiled)
    compiled.extend(_random(2))
    assert compiled.cutter(compiled.program.needs) is not parts[0]._write._cutter


@pytest.mark.parametrize(
    "model",
    [
        enfa.DSSGNN([5, 3], 6, 2, 2), enfa.DSGNN([5, 3], 6, 2, 2, "gcn"),
        enfa.DSGNN([5, 3], 6, 2, 2, "gine", edge_channels=[4, 3]), enfa.DSGNN([5, 3], 6, 2, 2, residual=True),
    ],
    ids=["context", "degrees", "edges of several kinds", "own rows"],
)  # fmt: skip
def test_other_models_are_sliced(model: enfa.DSGNN) -> None:
    compiled = enfa.compile(_random(8), enfa.NodeMarking(), model, progress=False)
    loader = enfa.batch.PackedLoader(compiled, None, 4)
    assert loader._write._cutter is None
    _check(loader, model.eval(), compiled)
    assert enfa.compile(_random(3), enfa.NodeMarking(), MODELS["last"], kind="full", progress=False).cutter(()) is None


class Deep(nn.Module):
    """Many convs and no norm: nothing is counted."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.start, self.head = nn.Linear(2, 4), nn.Linear(4, 1)
        self.convs = nn.ModuleList(make_conv("gin", 4, 4, 0, None) for _ in range(layers))

    def forward(self, bag: Any) -> Tensor:
        h = self.start(torch.cat([bag.x, bag.mark], 1))
        for conv in self.convs:
            h = bag.propagate(conv, h).tanh()
        return self.head(bag.pool(bag.pool(h), "mean"))


def test_rows_of_deep_models_that_count_nothing() -> None:
    """A row of a cubic graph reads four: after 32 layers, as many ways lead to each as 64 bits do not hold."""
    torch.manual_seed(0)
    model, policy = Deep(33).double(), enfa.NodeMarking()
    graphs = []
    for n in (3, 4, 5):  # prisms
        ring = torch.arange(n)
        edges = torch.cat([torch.stack([ring, (ring + 1) % n]), torch.stack([ring + n, (ring + 1) % n + n]),
                           torch.stack([ring, ring + n])], 1)  # fmt: skip
        graphs.append(Data(x=torch.ones(2 * n, 1), edge_index=torch.cat([edges, edges.flip(0)], 1)))
    compiled = enfa.compile(graphs, policy, model, progress=False)
    assert not compiled.program.counted and Cutter.takes(compiled.slicer, compiled.program.needs)
    with torch.no_grad():
        expected = model(enfa.make_plan(graphs, policy, model, "full"))
        for batch in PackedLoader(compiled, model, 2):
            torch.testing.assert_close(model(batch.plan), expected[batch.graphs], rtol=1e-9, atol=1e-9)


def test_copies_below_one_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a file may hold them that was written so."""
    model = enfa.DSGNN(3, 4, 1, 2)
    compiled = enfa.compile(random_graphs(4), enfa.NodeMarking(), model, progress=False)
    there = rows_by_graph

    def without(*args: Any) -> list[Any]:
        found = there(*args)
        found[1][2][0] = 0
        return found

    monkeypatch.setattr("enfa.plan.cutting.cut.rows_by_graph", without)
    with pytest.raises(ValueError, match=r"^Expected copies of all rows that graphs have, got some without: compile again$"):
        Cutter(compiled.slicer, compiled.program.needs)
