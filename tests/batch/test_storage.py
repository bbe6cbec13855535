"""One file: what goes in comes out, and whatever happens to the file in between is noticed."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import random
import re
import stat
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

import enfa
from enfa.batch import CorruptFileError, storage
from enfa.testing import random_graphs

SPEC = enfa.Spec(2, edge_attr=True)


@pytest.fixture
def compiled(graphs: list[Data]) -> enfa.CompiledDataset:
    return enfa.compile(graphs, enfa.NodeMarking(), SPEC, progress=False)


@pytest.mark.parametrize("kind", ["distinct", "ego", "full"])
def test_round_trip(
    model: nn.Module, policy: enfa.Policy, kind: str, graphs: list[Data], tmp_path: Path, assert_identical: Callable
) -> None:
    compiled = enfa.compile(graphs, policy, model.spec, progress=False, kind=kind)
    path = tmp_path / "x.enfa"
    compiled.save(path)
    assert path.stat().st_size == storage.stored_bytes(compiled)["total"]
    loaded = enfa.load_compiled(path, expect=compiled.key, policy=policy)
    assert loaded.key == compiled.key and loaded.policy == policy and loaded.spec == model.spec
    assert loaded.kind == kind and loaded.cost() == compiled.cost()
    np.testing.assert_array_equal(loaded.rows_per_graph(), compiled.rows_per_graph())
    for chosen in (slice(None), [4, 22, 9]):
        assert_identical(loaded[chosen], compiled[chosen])
    loaded.save(tmp_path / "again.enfa")
    assert (tmp_path / "again.enfa").read_bytes() == path.read_bytes()


def test_float_features_and_several_labels(tmp_path: Path, assert_identical: Callable) -> None:
    graphs = random_graphs(5, 6, channels=4, edge_channels=2)
    for graph in graphs:
        graph.y = torch.tensor([[0.5, float("nan")]])
    compiled = enfa.compile(graphs, enfa.EdgeDeletion(), SPEC, progress=False)
    compiled.save(tmp_path / "x.enfa")
    loaded = enfa.load_compiled(tmp_path / "x.enfa")
    assert torch.equal(loaded[:].y.isnan(), compiled[:].y.isnan())
    compiled.y = loaded.y = None
    assert_identical(loaded[:], compiled[:])


def _forbidden(*_: object, **__: object) -> None:
    raise AssertionError("stored data went through pickle")


def test_no_pickle(compiled: enfa.CompiledDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("load", "loads", "dump", "dumps", "Unpickler", "Pickler"):
        monkeypatch.setattr(pickle, name, _forbidden)
    monkeypatch.setattr(torch, "load", _forbidden)
    monkeypatch.setattr(torch, "save", _forbidden)
    compiled.save(tmp_path / "x.enfa")
    assert len(enfa.load_compiled(tmp_path / "x.enfa")) == len(compiled)


def test_every_single_byte_counts(compiled: enfa.CompiledDataset, tmp_path: Path) -> None:
    path, broken = tmp_path / "x.enfa", tmp_path / "broken.enfa"
    compiled.save(path)
    data = path.read_bytes()
    ends = [*range(12), *range(len(data) - 44, len(data))]  # the image's own header, and the trailer
    positions = ends + random.Random(0).sample(range(len(data)), 300)
    for position in positions:
        changed = bytearray(data)
        changed[position] ^= 1 << (position % 8)
        broken.write_bytes(changed)
        with pytest.raises(CorruptFileError, match=r"broken\.enfa"):
            enfa.load_compiled(broken)


def test_truncation_and_additions(compiled: enfa.CompiledDataset, tmp_path: Path) -> None:
    path, broken = tmp_path / "x.enfa", tmp_path / "broken.enfa"
    compiled.save(path)
    data = path.read_bytes()
    lengths = [0, 1, 39, 40, 41, len(data) - 41, len(data) - 40, len(data) - 1]
    for content in [data[:n] for n in (*lengths, *range(50, len(data), 997))] + [data + b"\0", data[:-40] + data]:
        broken.write_bytes(content)
        with pytest.raises(CorruptFileError, match=r"broken\.enfa"):
            enfa.load_compiled(broken)
    with pytest.raises(FileNotFoundError, match="missing"):
        enfa.load_compiled(tmp_path / "missing.enfa")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fingerprint": "0" * 32}, "fingerprint: '[0-9a-f]{32}' stored, '0{32}' wanted"),
        ({"policy": "NodeDeletion", "params": {"isolate": True}}, "policy: 'NodeMarking' stored, 'NodeDeletion'"),
        ({"spec": {"num_layers": 5}}, "spec: {.*'num_layers': 2.* stored, {'num_layers': 5} wanted"),
        ({"kind": "full"}, "kind: 'distinct' stored, 'full' wanted"),
    ],
)
def test_another_key_is_refused(
    compiled: enfa.CompiledDataset, changes: dict, message: str, tmp_path: Path
) -> None:
    compiled.save(tmp_path / "x.enfa")
    with pytest.raises(ValueError, match=r"x\.enfa was compiled for something else.*" + message):
        enfa.load_compiled(tmp_path / "x.enfa", expect={**compiled.key, **changes})


def test_another_version_or_policy_is_refused(compiled: enfa.CompiledDataset, tmp_path: Path) -> None:
    compiled.save(tmp_path / "x.enfa")
    with pytest.raises(ValueError, match="policy: 'NodeMarking' stored, 'NodeDeletion' wanted; params"):
        enfa.load_compiled(tmp_path / "x.enfa", policy=enfa.NodeDeletion())
    compiled.key = {**compiled.key, "format": 99}
    compiled.save(tmp_path / "x.enfa")
    with pytest.raises(ValueError, match=r"x\.enfa .*format: 99 stored, \d wanted"):
        enfa.load_compiled(tmp_path / "x.enfa")


def test_after_extending_it_is_another_dataset(
    compiled: enfa.CompiledDataset, new_graphs: list[Data], tmp_path: Path
) -> None:
    key = compiled.key
    compiled.extend(new_graphs)
    compiled.save(tmp_path / "x.enfa")
    with pytest.raises(ValueError, match="fingerprint"):
        enfa.load_compiled(tmp_path / "x.enfa", expect=key)
    assert len(enfa.load_compiled(tmp_path / "x.enfa")) == len(compiled)


class Own(enfa.Policy):
    """A policy that the package does not know."""

    def bag(self, graph: enfa.edits.GraphView) -> list[enfa.Subgraph]:
        return [enfa.Subgraph().mark_node(v) for v in range(graph.num_nodes)]


def test_a_policy_of_ones_own_must_be_given_to_extend(
    graphs: list[Data], new_graphs: list[Data], tmp_path: Path
) -> None:
    enfa.compile(graphs, Own(), SPEC, progress=False).save(tmp_path / "x.enfa")
    with pytest.raises(ValueError, match="load with load_compiled"):
        enfa.load_compiled(tmp_path / "x.enfa").extend(new_graphs)
    loaded = enfa.load_compiled(tmp_path / "x.enfa", policy=Own())
    assert len(loaded.extend(new_graphs)) == len(new_graphs)


def test_permissions_are_those_of_any_file(compiled: enfa.CompiledDataset, tmp_path: Path) -> None:
    compiled.save(tmp_path / "x.enfa")
    (tmp_path / "plain").write_text("")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("x.enfa", "plain")]
    assert modes[0] == modes[1]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    compiled: enfa.CompiledDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled.save(tmp_path / "x.enfa")
    before = (tmp_path / "x.enfa").read_bytes()

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        compiled.save(tmp_path / "x.enfa")
    assert [p.name for p in tmp_path.iterdir()] == ["x.enfa"]
    assert (tmp_path / "x.enfa").read_bytes() == before


def _write_for_ever(datasets: list[enfa.CompiledDataset], path: Path, started: object) -> None:
    """Packed before, so that nearly all the time goes into writing."""
    images = {id(compiled): storage._image(compiled) for compiled in datasets}
    storage._image = lambda compiled: images[id(compiled)]  # type: ignore[assignment]
    started.set()  # type: ignore[attr-defined]
    while True:
        for compiled in datasets:
            compiled.save(path)


def test_kill_9_at_random_moments(tmp_path: Path) -> None:
    """Fifty times, half of them with an old file there: one of the whole files is there afterwards, or none."""
    noise = torch.from_numpy(np.random.default_rng(0).normal(size=(4, 100_000)))  # does not compress: a file of some MB
    datasets = []
    for seed in (0, 1):
        compiled = enfa.compile(random_graphs(4, 6, seed=seed), enfa.NodeMarking(), enfa.Spec(1), progress=False)
        compiled.y = noise
        datasets.append(compiled)
    keys, outcomes = [compiled.key for compiled in datasets], []
    fork, wait = multiprocessing.get_context("fork"), random.Random(0)
    for trial in range(50):
        path = tmp_path / f"{trial}.enfa"
        if trial % 2:
            datasets[0].save(path)
        started = fork.Event()
        writer = fork.Process(target=_write_for_ever, args=(datasets, path, started))
        writer.start()
        started.wait()
        time.sleep(wait.uniform(0, 0.03))
        writer.kill()
        writer.join()
        partial = any(p.name.endswith(".partial") for p in tmp_path.iterdir())
        if path.exists():
            found = enfa.load_compiled(path)
            assert found.key in keys
            assert found.cost() == datasets[keys.index(found.key)].cost()
        else:
            assert trial % 2 == 0  # an old file is never destroyed
        outcomes.append((path.exists(), partial))
        for left in tmp_path.iterdir():
            left.unlink()
    # the kills struck while a file was half written, and both with and without a file there
    assert sum(partial for _, partial in outcomes) >= 10
    assert {exists for exists, _ in outcomes} == {True, False}


def test_bytes_by_array_add_up(compiled: enfa.CompiledDataset) -> None:
    sizes = storage.stored_bytes(compiled)
    total = sizes.pop("total")
    assert 0 < total - sum(sizes.values()) < 12_000  # the headers and the trailer
    assert all(re.fullmatch(r"(sources|layer\d|start|deltas)\..*|base_(ptr|row)|sub_delta|graph_rows|y", n) for n in sizes)


def test_a_policy_within_a_policy_is_found_again(tmp_path: Path) -> None:
    graphs = random_graphs(4, 6, seed=1)
    policy = enfa.Subsample(enfa.EgoNets(1, mark=True), count=2, seed=3)
    enfa.compile(graphs, policy, enfa.Spec(2), progress=False).save(tmp_path / "a.enfa")
    assert enfa.load_compiled(tmp_path / "a.enfa").policy == policy


def test_what_was_not_planned_ahead_is_planned_after_loading(tmp_path: Path) -> None:
    graphs, spec = random_graphs(4, 6, seed=1), enfa.DSSGNN(3, 4, 2, 2).spec
    draw = enfa.Subsample(enfa.NodeMarking(), count=2)
    compiled = enfa.compile(graphs, draw.policy, spec, tmp_path, progress=False, ahead=False)
    assert not list(tmp_path.iterdir())  # no cache of what takes no time
    compiled.save(tmp_path / "a.enfa")
    loaded = enfa.load_compiled(tmp_path / "a.enfa")
    for plan in (compiled.plan([1, 3], draw, 2), loaded.plan([1, 3], draw, 2)):
        full = enfa.compile(graphs, draw.policy, spec, progress=False, kind="full").plan([1, 3], draw, 2)
        model = enfa.DSSGNN(3, 4, 2, 2).double().eval()
        torch.testing.assert_close(model(plan), model(full), rtol=1e-10, atol=1e-10)
