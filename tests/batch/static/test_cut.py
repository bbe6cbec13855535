"""Loaders cut batches out of runs where they can; tests/plan/cutting compares what comes out number for number."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

import enfa
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
