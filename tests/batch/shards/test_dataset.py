"""Sharded datasets are used as compiled ones are, and give the same."""

from __future__ import annotations

import copy
import itertools
import pickle
import uuid
from pathlib import Path

import numpy as np
import pytest
import torch
from shard_files import write_shards
from torch import nn
from torch_geometric.data import Data

import enfa
from enfa.batch import CorruptFileError, PackedLoader
from enfa.batch.shards.folder import Folder
from enfa.batch.shards.reading.cache import memory_of
from enfa.graphs.numbers import bytes_of
from enfa.testing import random_graphs

SIZES = [7, 9, 5, 8, 6, 9, 4, 8]


def _model(**options) -> nn.Module:
    torch.manual_seed(0)
    return enfa.DSGNN([3], 8, 1, 2, "gine", edge_channels=[3], **options).double()


@pytest.fixture(scope="module")
def molecules() -> list[Data]:
    found = random_graphs(sum(SIZES), 9, seed=3, channels=[3], edge_channels=[3])
    for i, graph in enumerate(found):
        graph.y = torch.tensor([[i / 10]], dtype=torch.float64)
    return found


@pytest.fixture(scope="module")
def folder(molecules: list[Data], tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("sharded")
    write_shards(found, molecules, enfa.NodeMarking(), _model(), SIZES)
    return found


@pytest.fixture(scope="module")
def one(molecules: list[Data]) -> enfa.CompiledDataset:
    return enfa.compile(molecules, enfa.NodeMarking(), _model(), progress=False, unshared=None)


def _tight(folder: Path) -> enfa.ShardedDataset:
    """With memory for windows of a shard or two."""
    large = enfa.ShardedDataset.open(folder)
    assert large.whole
    sharded = enfa.ShardedDataset.open(folder, int(4.01 * (large.windows.size * SIZES).max()))
    assert not sharded.whole
    return sharded


def _same(model: nn.Module, found: enfa.Bag, expected: enfa.Bag) -> None:
    assert torch.equal(found.graph_ids, expected.graph_ids) and torch.equal(found.y, expected.y)
    with torch.no_grad():
        pair = [copy.deepcopy(model).train()(plan) for plan in (found, expected)]
    torch.testing.assert_close(*pair, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("memory", ["whole", "tight"])
def test_indexing(folder: Path, one: enfa.CompiledDataset, memory: str) -> None:
    sharded, model = enfa.ShardedDataset.open(folder) if memory == "whole" else _tight(folder), _model()
    assert len(sharded) == len(one) and (sharded.num_pairs, sharded.num_subgraphs) == (one.num_pairs, one.num_subgraphs)
    mask = np.arange(len(one)) % 9 == 4
    for chosen in (5, [50, 3, 17], slice(2, 40, 7), torch.tensor([1, 55]), mask, [-1, 0], slice(None)):
        _same(model, sharded[chosen], one[chosen])
    with pytest.raises(IndexError, match="Expected graphs 0 to 55, got 56 to 56"):
        sharded[56]
    with pytest.raises(ValueError, match="at most once"):
        sharded[[1, 1]]
    assert torch.equal(sharded.y, one.y) and np.array_equal(sharded.rows_per_graph(), one.rows_per_graph())
    assert f"{len(one)} graphs in 8 shards" in repr(sharded)


@pytest.mark.parametrize("workers", [0, 2])
def test_loaders(folder: Path, one: enfa.CompiledDataset, workers: int) -> None:
    """The order is a function of seed and epoch; every batch is what one table gives for its graphs."""
    sharded, model = _tight(folder), _model()
    loader, again = (enfa.DataLoader(sharded, 5, True, workers, seed=1) for _ in range(2))
    orders = []
    for _ in range(2):
        order = []
        for plan in loader:
            order.append(plan.graph_ids.tolist())
            _same(model, plan, one[plan.graph_ids])
        assert [len(batch) for batch in order] == [5] * 11 + [1] and len(loader) == 12
        assert sorted(itertools.chain(*order)) == list(range(56))
        orders.append(order)
    assert orders[0] != orders[1] and [plan.graph_ids.tolist() for plan in again] == orders[0]
    again.set_epoch(1)
    assert [plan.graph_ids.tolist() for plan in again] == orders[1]


def test_splits_and_sizes(folder: Path, one: enfa.CompiledDataset) -> None:
    sharded, model = _tight(folder), _model()
    chosen = np.random.default_rng(0).permutation(56)[:30]
    for options in ({}, {"max_rows": 300}, {"drop_last": True}):
        pair = [enfa.DataLoader(dataset, 8, graphs=chosen, **options) for dataset in (sharded, one)]
        assert len(pair[0]) == len(pair[1])
        for found, expected in zip(*pair, strict=True):  # as they stand, without shuffling
            _same(model, found, expected)
    shuffled = enfa.DataLoader(sharded, 8, True, graphs=chosen, max_rows=300)
    found = list(shuffled)
    assert sorted(itertools.chain(*(plan.graph_ids.tolist() for plan in found))) == sorted(chosen.tolist())
    assert all(len(plan.graph_ids) == 1 or sum(plan.cost().rows) <= 300 for plan in found)


def test_windows_are_opened_once_and_the_next_one_ahead(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sharded, read = _tight(folder), []
    inner = sharded.shards.read
    monkeypatch.setattr(sharded.shards, "read", lambda number: read.append(number) or inner(number))
    loader = enfa.DataLoader(sharded, 5, True)
    batches = iter(loader)
    next(batches)
    sharded.reader.wait()
    early = len(read)
    assert 1 < early < 8  # the second window, too
    list(batches)
    assert sorted(read) == list(range(8))  # also for batches that begin in one window and end in the next


def test_memory_is_what_was_given(folder: Path) -> None:
    sharded = _tight(folder)
    for _ in enfa.DataLoader(sharded, 2, True):
        opened = sharded.reader._opened
        assert opened is not None and len(opened.ids) < 20
        sharded[np.arange(0, 56, 11)]
        ahead = sharded.reader._ahead
        following = 0 if ahead is None else memory_of(ahead[1].result().table)
        assert 1.5 * (memory_of(opened.table) + following) + sharded.shards.held <= sharded.memory
    with pytest.raises(ValueError, match=r"Expected memory for 4 times the largest shard, .* GiB, got .* GiB: give more, or"):
        enfa.ShardedDataset.open(folder, sharded.memory * 9 // 10)
    assert bytes_of("1.5 MiB") == 3 * 2**19
    with pytest.raises(ValueError, match="such as '2 GiB', got '2 GX'"):
        bytes_of("2 GX")
    for other in (copy.deepcopy(sharded), pickle.loads(pickle.dumps(sharded))):  # as processes that are spawned get it
        assert other.shards.held == 0 and other[[3, 50]].graph_ids.tolist() == [3, 50]
    sharded.close()
    assert sharded.shards.held == 0 and len(sharded[[3]].graph_ids) == 1


def test_drawing_parts_of_bags(folder: Path, one: enfa.CompiledDataset) -> None:
    sharded, model, draw = _tight(folder), _model(), enfa.Subsample(enfa.NodeMarking(), count=2, seed=3)
    loader = enfa.DataLoader(sharded, 6, True, draw=draw)
    for epoch in range(2):
        for plan in loader:
            _same(model, plan, one.plan(plan.graph_ids, draw, epoch))
    with pytest.raises(ValueError, match="Expected no score"):
        sharded.plan([1], draw, score=np.zeros(sharded.num_subgraphs))


def test_dropout_draws_as_in_one_table(molecules: list[Data], tmp_path: Path) -> None:
    model = _model(dropout=0.5)
    write_shards(tmp_path, molecules[:20], enfa.NodeMarking(), model, [6, 6, 8])
    sharded = enfa.ShardedDataset.open(tmp_path)
    one = enfa.compile(molecules[:20], enfa.NodeMarking(), model, progress=False)
    found = []
    for dataset in (sharded, one):
        torch.manual_seed(1)
        found.append(copy.deepcopy(model).train()(dataset[[19, 2, 7, 11]]))
    torch.testing.assert_close(*found, rtol=1e-10, atol=1e-10)


def test_loaders_that_join_graphs_are_refused(folder: Path) -> None:
    with pytest.raises(TypeError, match=r"Expected enfa\.DataLoader\(compiled, batch_size\) for a ShardedDataset, got another"):
        next(iter(torch.utils.data.DataLoader(enfa.ShardedDataset.open(folder), 2)))  # type: ignore[arg-type]


def test_packed_batches(folder: Path, one: enfa.CompiledDataset) -> None:
    sharded, model = _tight(folder), _model()
    loader = PackedLoader(sharded, batch_size=8, shuffle=True, num_workers=2)
    assert len(loader.buckets) > 1
    for _ in range(2):
        seen = []
        for packed in loader:
            seen += packed.graphs.tolist()
            plan = packed.plan
            with torch.no_grad():
                found = copy.deepcopy(model).train()(plan)
                expected = copy.deepcopy(model).train()(one[packed.graphs])
            torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
        assert sorted(seen) == list(range(56))
    loader.close()


def test_graphs_are_added_as_a_shard(molecules: list[Data], tmp_path: Path) -> None:
    model = _model()
    write_shards(tmp_path, molecules[:20], enfa.NodeMarking(), model, [6, 6, 8])
    sharded = enfa.ShardedDataset.open(tmp_path)
    assert sharded.extend(molecules[20:25]).tolist() == [20, 21, 22, 23, 24]
    one = enfa.compile(molecules[:25], enfa.NodeMarking(), model, progress=False)
    for dataset in (sharded, enfa.ShardedDataset.open(tmp_path)):
        assert len(dataset) == 25 and len(dataset.shards) == 4
        _same(model, dataset[[24, 3, 20]], one[[24, 3, 20]])
    with pytest.raises(ValueError, match="graphs 25 to 25: Expected 'y' of float64"):
        sharded.extend([molecules[30].clone().update({"y": None})])
    with pytest.raises(ValueError, match="at least one graph to add"):
        sharded.extend([])
    with pytest.raises(ValueError, match="in one file for a model with 1 layers"):
        sharded.first_layers(1)
    with pytest.raises(ValueError, match="which are stored in"):
        sharded.save(tmp_path / "one.enfa")
    assert len(enfa.ShardedDataset.open(tmp_path)) == 25


def test_a_damaged_shard_is_named(folder: Path, molecules: list[Data], tmp_path: Path) -> None:
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    bad = tmp_path / "shard-00003.enfa"
    data = bytearray(bad.read_bytes())
    data[len(data) // 2] ^= 1
    bad.write_bytes(bytes(data))
    sharded = enfa.ShardedDataset.open(tmp_path, _tight(folder).memory)
    with pytest.raises(CorruptFileError, match=r"shard-00003\.enfa: damaged: its checksum does not match"):
        list(enfa.DataLoader(sharded, 5, True))  # from the thread that reads ahead
    bad.write_bytes(bytes(data[:-1]))
    with pytest.raises(CorruptFileError, match=r"shard-00003\.enfa: damaged: expected \d+ bytes, as the manifest says"):
        sharded[22]
    other = folder / "shard-00004.enfa"
    bad.write_bytes(other.read_bytes())
    with pytest.raises(ValueError, match=r"shard-00003\.enfa"):
        sharded[22]
    bad.unlink()
    with pytest.raises(CorruptFileError, match=r"shard-00003\.enfa: missing: expected a file of \d+ bytes, as the manifest"):
        sharded[22]
    assert sharded[[0, 55]].graph_ids.tolist() == [0, 55]


def test_a_url(molecules: list[Data], tmp_path: Path) -> None:
    pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'enfa[scale]'")
    write_shards(tmp_path, molecules[:12], enfa.NodeMarking(), _model(), [5, 7])
    here, there = Folder(tmp_path), Folder(f"memory:///{uuid.uuid4().hex}")
    for name in here.names():
        there.write(name, [here.read(name)])
    assert enfa.ShardedDataset.open(there.url)[[9, 2]].graph_ids.tolist() == [9, 2]
    there.remove("shard-00001.enfa")
    with pytest.raises(CorruptFileError, match=r"^memory://.*/shard-00001\.enfa: missing: "):
        enfa.ShardedDataset.open(there.url)[9]
