"""A batch that is joined from runs is the sliced plan, byte for byte, whatever its graphs share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cases import POLICIES
from torch_geometric.data import Data

import enfa
from enfa.batch.fill import Filler
from enfa.batch.static.padding import Bucket, Form
from enfa.plan.cut import MOST, Cutter
from enfa.plan.prepare import lean, prepare
from enfa.plan.slice import Slicer
from enfa.testing import degenerate_graphs, random_graphs

MODELS = {
    "last": enfa.DSGNN([5, 3], 6, 2, 3, "gin"),
    "all tables": enfa.DSGNN([5, 3], 6, 2, 3, "gin", jk="concat"),
    "mean, one layer": enfa.DSGNN([5, 3], 6, 2, 1, "gin", jk="concat", readout="mean"),
}
ALL = {**POLICIES, "ego nets": enfa.EgoNets(1), "ego nets, marked": enfa.EgoNets(2, mark=True)}


def _random(count: int) -> list[Data]:
    return random_graphs(count, 12, channels=[5, 3], edge_channels=[4, 3], seed=2)


DATASETS = {
    "few rows shared": lambda: random_graphs(8, 24, channels=[5, 3], edge_channels=[4, 3], seed=1),
    "each graph twice": lambda: [g for g in _random(4) for _ in range(2)],
    "one graph twice": lambda: [*_random(7), _random(7)[2]],
    "nothing but shared rows": lambda: [g for g in _random(2) for _ in range(4)],
    "degenerate ones": lambda: [*degenerate_graphs([5, 3], [4, 3]).values()][:8],
}
BATCHES = [[0, 2, 5, 7], [7, 6, 1, 0], [1, 0, 3, 2], [4, 2, 3, 6]]


def _same(compiled: enfa.CompiledDataset, model: enfa.DSGNN, batches: list[list[int]]) -> list[float]:
    """Compares all bytes; returns the parts of the rows of each table that lie in runs."""
    cutter = compiled.cutter(model.needs)
    assert cutter is not None
    for chosen in batches:
        graphs = np.array(chosen)
        plan = prepare(cutter.slicer.plan(graphs, tables=model.needs.tables, runs=True).check(), model.needs)
        compiled.labelled(plan)
        cut = cutter.cut(graphs)
        assert cut.plan.num_pairs == plan.num_pairs
        if not plan.countable:  # no block holds it, but a worker has cut it before it knows
            continue
        form = Form(lean(plan, model.needs))
        tensors = form.tensors(plan)
        assert tensors is not None
        bucket = Bucket(form, form.sizes(tensors) + 3)
        filler = Filler(form, model.needs)
        filled, copied = (bucket.arrays(np.full(bucket.nbytes, value, np.uint8)) for value in (7, 9))
        bucket.write(tensors, copied)
        compiled.labelled(cut.plan)
        assert filler.fill(cut, [filler.block(bucket, filled)]) == 0
        for k, (one, other) in enumerate(zip(filled, copied)):
            assert one.tobytes() == other.tobytes(), (chosen, k)
    return [float((run.owner >= 0).any(axis=0).mean()) for run in cutter.slicer.runs.tables]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("policy", ALL)
def test_same_bytes(policy: str, dataset: str, name: str) -> None:
    model = MODELS[name]
    compiled = enfa.compile(DATASETS[dataset](), ALL[policy], model.spec, progress=False)
    inside = _same(compiled, model, BATCHES)
    if dataset in ("few rows shared", "each graph twice"):
        assert inside[-1] > 0.3
    if dataset == "each graph twice":  # both of a pair have runs
        owner = compiled.cutter(model.needs).slicer.runs.tables[-1].owner
        assert (owner[0] >= 0).mean() == (owner[1] >= 0).mean() == inside[-1]
    if dataset == "nothing but shared rows":
        assert max(inside) == 0


def test_rows_that_are_numbered_otherwise_are_the_same_rows() -> None:
    """Slicing with and without runs gives equal predictions, and as many rows."""
    model = MODELS["all tables"].eval()
    compiled = enfa.compile(DATASETS["each graph twice"](), enfa.NodeMarking(), model.spec, progress=False)
    cutter = compiled.cutter(model.needs)
    assert cutter is not None
    for chosen in BATCHES:
        one, other = (cutter.slicer.plan(np.array(chosen), runs=runs) for runs in (False, True))
        assert one.cost() == other.cost()
        np.testing.assert_allclose(model(one).detach(), model(other).detach(), rtol=1e-5, atol=1e-6)


def test_after_extending_and_with_fewer_layers(tmp_path: Path) -> None:
    """Rows of a graph do not lie side by side any more."""
    model = MODELS["all tables"]
    compiled = enfa.compile(_random(8), enfa.NodeMarking(), model.spec, progress=False)
    before = _same(compiled, model, BATCHES)
    more = [*_random(3), *random_graphs(5, 12, channels=[5, 3], edge_channels=[4, 3], seed=9)]
    compiled.extend(more)
    after = _same(compiled, model, [*BATCHES, [0, 8, 11, 15], [9, 12, 13, 1]])
    assert 0 < after[-1] < before[-1]
    compiled.save(tmp_path / "x.enfa")
    assert _same(enfa.load_compiled(tmp_path / "x.enfa"), model, [[0, 8, 11, 15]]) == after
    fewer = enfa.DSGNN([5, 3], 6, 2, 2, "gin", jk="concat")
    _same(compiled.first_layers(2), fewer, [*BATCHES, [0, 8, 11, 15]])


@pytest.mark.parametrize(
    ("model", "cut", "filled"),
    [
        (enfa.DSSGNN([5, 3], 6, 2, 2), False, False),
        (enfa.DSGNN([5, 3], 6, 2, 2, "gcn"), False, True),
        (enfa.DSGNN([5, 3], 6, 2, 2, "gine", edge_channels=[4, 3]), False, True),
        (enfa.DSGNN([5, 3], 6, 2, 2, residual=True), True, False),
    ],
    ids=["context", "degrees", "edges of several kinds", "own rows"],
)
def test_other_models_are_sliced(model: enfa.DSGNN, cut: bool, filled: bool) -> None:
    """Batches are cut out only where both can be done."""
    compiled = enfa.compile(_random(4), enfa.NodeMarking(), model.spec, progress=False)
    assert (compiled.cutter(model.needs) is not None) == cut
    assert Filler.takes(compiled[[0, 1]], model.needs) == filled


def test_the_loader_cuts() -> None:
    model = MODELS["all tables"]
    compiled = enfa.compile(_random(12), enfa.NodeMarking(), model.spec, progress=False)
    loader = enfa.batch.PackedLoader(compiled, model.needs, 4, shuffle=True)
    assert loader._write._cutter is not None
    model.eval()
    for packed in loader:
        assert packed.bucket is not None
        found, expected = model(packed.plan), model(compiled[packed.graphs])
        np.testing.assert_allclose(found.detach(), expected.detach(), rtol=1e-5, atol=1e-6)


def test_loaders_of_one_dataset_share_a_cutter_until_it_is_extended() -> None:
    """For a large dataset it takes gigabytes, and there is a loader for each part of a split."""
    model = MODELS["last"].eval()
    compiled = enfa.compile(_random(12), enfa.NodeMarking(), model.spec, progress=False)
    parts = [enfa.batch.PackedLoader(compiled, model.needs, 3, graphs=g) for g in ([0, 1, 2, 5, 7, 8], [3, 4, 6])]
    assert parts[0]._write._cutter is parts[1]._write._cutter is not None
    for pair in zip(*parts):  # in turns, out of the same scratch
        for packed in pair:
            found, expected = model(packed.plan), model(compiled[packed.graphs])
            np.testing.assert_allclose(found.detach(), expected.detach(), rtol=1e-5, atol=1e-6)
    assert compiled.cutter(MODELS["all tables"].needs) is not parts[0]._write._cutter
    compiled.extend(_random(2))
    assert compiled.cutter(model.needs) is not parts[0]._write._cutter


@pytest.mark.parametrize("table", ["a layer", "deltas"])
def test_a_large_dataset_is_sliced(table: str) -> None:
    """All its lists in memory once more would cost more than they save."""
    compiled = enfa.compile(_random(4), enfa.NodeMarking(), MODELS["last"].spec, progress=False)
    assert compiled.rows is not None and Cutter.takes(Slicer(compiled.rows, compiled.sources))
    size = (compiled.rows.layers[1].rows if table == "a layer" else compiled.rows.deltas).size
    for items, taken in ((MOST - 10_000, True), (MOST, False)):
        size[1] = items
        assert Cutter.takes(Slicer(compiled.rows, compiled.sources)) is taken
