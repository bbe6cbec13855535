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
import stored
import torch
from program_cases import CASES, Case, Chain, assert_exact, graphs_of
from torch_geometric.data import Data

import enfa
from enfa.batch import CorruptFileError
from enfa.batch.dataset import CompiledDataset
from enfa.batch.file import storage
from enfa.batch.file.header import FORMAT
from enfa.testing import random_graphs


@pytest.fixture(scope="module")
def compiled() -> CompiledDataset:
    return CASES["dss"].compiled(graphs_of(CASES["dss"]))


@pytest.mark.parametrize("name", CASES)
def test_round_trip(name: str, tmp_path: Path, assert_identical: Callable) -> None:
    case, path = CASES[name], tmp_path / "x.enfa"
    graphs = graphs_of(case)
    compiled = case.compiled(graphs)
    compiled.save(path)
    assert path.stat().st_size == storage.stored_bytes(compiled)["total"]
    loaded = enfa.load_compiled(path, expect=compiled.key, policy=case.policy)
    assert loaded.key == compiled.key and loaded.program == compiled.program and loaded.policy == case.policy
    assert loaded.program.needs == compiled.program.needs
    assert loaded.kind == case.kind and loaded.cost() == compiled.cost() and repr(loaded) == repr(compiled)
    np.testing.assert_array_equal(loaded.rows_per_graph(), compiled.rows_per_graph())
    for chosen in (slice(None), [4, 12, 9]):
        one, other = loaded[chosen], compiled[chosen]
        assert_identical(one, other)
        assert one.graph_attr.keys() == {"weight", "several"} and one.limits == other.limits
        assert all(torch.equal(value, other.graph_attr[name]) for name, value in one.graph_attr.items())
    assert_exact(case, loaded[[3, 0, 9]], [graphs[g] for g in (3, 0, 9)])
    loaded.save(tmp_path / "again.enfa")
    assert (tmp_path / "again.enfa").read_bytes() == path.read_bytes()


def test_several_labels_and_none(tmp_path: Path) -> None:
    case = CASES["ds"]
    graphs = graphs_of(case)
    for graph in graphs:
        graph.y = torch.tensor([[0.5, float("nan")]])
    case.compiled(graphs).save(tmp_path / "x.enfa")
    assert enfa.load_compiled(tmp_path / "x.enfa")[:].y.isnan().tolist() == [[False, True]] * 16
    bare = [Data(x=graph.x, edge_index=graph.edge_index) for graph in graphs]
    case.compiled(bare).save(tmp_path / "x.enfa")
    loaded = enfa.load_compiled(tmp_path / "x.enfa")
    assert loaded[:3].y is None and loaded[:3].graph_attr == {}


def _forbidden(*_: object, **__: object) -> None:
    raise AssertionError("stored data went through pickle")


def test_no_pickle(compiled: CompiledDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("load", "loads", "dump", "dumps", "Unpickler", "Pickler"):
        monkeypatch.setattr(pickle, name, _forbidden)
    monkeypatch.setattr(torch, "load", _forbidden)
    monkeypatch.setattr(torch, "save", _forbidden)
    compiled.save(tmp_path / "x.enfa")
    assert len(enfa.load_compiled(tmp_path / "x.enfa")) == len(compiled)


def test_every_single_byte_counts(compiled: CompiledDataset, tmp_path: Path) -> None:
    path, broken = tmp_path / "x.enfa", tmp_path / "broken.enfa"
    compiled.save(path)
    data = path.read_bytes()
    ends = [*range(12), *range(len(data) - 44, len(data))]  # the image's own header, and the trailer
    for position in ends + random.Random(0).sample(range(len(data)), 200):
        changed = bytearray(data)
        changed[position] ^= 1 << (position % 8)
        broken.write_bytes(changed)
        with pytest.raises(CorruptFileError, match=r"broken\.enfa"):
            enfa.load_compiled(broken)


def test_truncation_and_additions(compiled: CompiledDataset, tmp_path: Path) -> None:
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
        ({"policy": "NodeMarking", "params": {}}, "policy: 'NodeDeletion' stored, 'NodeMarking' wanted; params"),
        ({"program": {"steps": []}}, "program: pairs start; pairs propagate 0; nodes across 1;.* stored, {.*} wanted"),
        ({"kind": "full"}, "kind: 'distinct' stored, 'full' wanted"),
        ({"dtype": None}, "dtype: 'float64' stored, None wanted"),
    ],
)
def test_another_key_is_refused(compiled: CompiledDataset, changes: dict, message: str, tmp_path: Path) -> None:
    compiled.save(tmp_path / "x.enfa")
    with pytest.raises(ValueError, match=r"x\.enfa was compiled for something else.*" + message):
        enfa.load_compiled(tmp_path / "x.enfa", expect={**compiled.key, **changes})


def test_another_policy_is_refused(compiled: CompiledDataset, tmp_path: Path) -> None:
    compiled.save(tmp_path / "x.enfa")
    with pytest.raises(ValueError, match="policy: 'NodeDeletion' stored, 'NodeMarking' wanted; params"):
        enfa.load_compiled(tmp_path / "x.enfa", policy=enfa.NodeMarking())


@pytest.mark.parametrize("version", [1, FORMAT - 1, FORMAT + 1])
def test_another_version_is_refused(compiled: CompiledDataset, version: int, tmp_path: Path) -> None:
    compiled.save(tmp_path / "a.enfa")
    header, arrays = stored.parts_of(tmp_path / "a.enfa")
    path = stored.write(tmp_path / "x.enfa", {**header, "key": {**header["key"], "format": version}}, arrays)
    message = rf"Expected a file of format {FORMAT}, got .*x\.enfa of format {version}, .*: delete it"
    with pytest.raises(ValueError, match=message):
        storage.load_compiled(path)


def test_after_extending_it_is_another_dataset(tmp_path: Path) -> None:
    case = CASES["ds"]
    compiled = case.compiled(graphs_of(case))
    key = compiled.key
    compiled.extend(graphs_of(case, 3, 5, False))
    assert compiled.key["digest"] != key["digest"]
    compiled.save(tmp_path / "x.enfa")
    with pytest.raises(ValueError, match="fingerprint"):
        enfa.load_compiled(tmp_path / "x.enfa", expect=key)
    assert len(enfa.load_compiled(tmp_path / "x.enfa", expect=compiled.key)) == len(compiled)


class Own(enfa.Policy):
    """A policy that the package does not know."""

    def bag(self, graph: enfa.edits.GraphView) -> list[enfa.Subgraph]:
        return [enfa.Subgraph().mark_node(v) for v in range(graph.num_nodes)]


def test_a_policy_of_ones_own_must_be_given_to_extend(tmp_path: Path) -> None:
    case = Case(Own(), Chain)
    graphs, more = graphs_of(case), graphs_of(case, 3, 5, False)
    case.compiled(graphs).save(tmp_path / "x.enfa")
    with pytest.raises(ValueError, match="load with load_compiled"):
        enfa.load_compiled(tmp_path / "x.enfa").extend(more)
    loaded = enfa.load_compiled(tmp_path / "x.enfa", policy=Own())
    assert loaded.extend(more).tolist() == [16, 17, 18]


def test_permissions_are_those_of_any_file(compiled: CompiledDataset, tmp_path: Path) -> None:
    compiled.save(tmp_path / "x.enfa")
    (tmp_path / "plain").write_text("")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("x.enfa", "plain")]
    assert modes[0] == modes[1]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    compiled: CompiledDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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


def _write_for_ever(datasets: list[CompiledDataset], path: Path, started: object) -> None:
    """Packed before, so that nearly all the time goes into writing."""
    images = {id(compiled): storage._image(compiled) for compiled in datasets}
    storage._image = lambda compiled: images[id(compiled)]  # type: ignore[assignment]
    started.set()  # type: ignore[attr-defined]
    while True:
        for compiled in datasets:
            compiled.save(path)


def test_kill_9_at_random_moments(tmp_path: Path) -> None:
    """Twenty times or more, half of them with an old file there: one of the whole files is there afterwards, or none."""
    noise = torch.from_numpy(np.random.default_rng(0).normal(size=(4, 100_000)))  # does not compress: a file of some MB
    datasets = []
    for seed in (0, 1):
        compiled = enfa.compile(random_graphs(4, 6, seed=seed), enfa.NodeMarking(), Chain(1), progress=False)
        compiled.y = noise
        datasets.append(compiled)
    keys, outcomes = [compiled.key for compiled in datasets], []
    fork, wait = multiprocessing.get_context("fork"), random.Random(0)
    for trial in range(200):
        path = tmp_path / f"{trial}.enfa"
        if trial % 2:
            datasets[0].save(path)
        started = fork.Event()
        writer = fork.Process(target=_write_for_ever, args=(datasets, path, started))
        writer.start()
        started.wait()
        time.sleep(wait.choice((0.003, 0.03)) * wait.random())
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
        # until kills have struck while a file was half written, and both with and without a file there
        seen = sum(partial for _, partial in outcomes) >= 4 and {exists for exists, _ in outcomes} == {True, False}
        if trial >= 19 and seen:
            break
    assert seen


def test_bytes_by_array_add_up(compiled: CompiledDataset) -> None:
    sizes = storage.stored_bytes(compiled)
    total = sizes.pop("total")
    assert 0 < total - sum(sizes.values()) < 20_000  # the headers and the trailer
    names = r"(sources|graph_attr)\..*|step\d\.((keys|lists)\.(own|length|a|b)|place|count(_ptr|_row)?)|y"
    assert all(re.fullmatch(names, name) for name in sizes)


def test_a_policy_within_a_policy_is_found_again(tmp_path: Path) -> None:
    policy = enfa.Subsample(enfa.EgoNets(1, mark=True), count=2, seed=3)
    enfa.compile(random_graphs(4, 6, seed=1), policy, Chain(2, 1), progress=False).save(tmp_path / "a.enfa")
    assert enfa.load_compiled(tmp_path / "a.enfa").policy == policy


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"Expected a file of compiled\.save, got the folder .*ShardedDataset"):
        enfa.load_compiled(tmp_path)
