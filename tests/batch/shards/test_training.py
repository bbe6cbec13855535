"""Training on eight shards is training on one table: batch by batch, and with two ranks."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.multiprocessing as mp
from shard_files import write_shards
from sharded_ranks import rank_of_shards, small_model, trained

import enfa
from enfa.testing import random_graphs

SIZES = [7, 9, 5, 8, 6, 9, 4, 8]
BATCH = 7


class _Ordered:
    """Batches of one table, in the order of another loader."""

    def __init__(self, one: enfa.CompiledDataset, loader: enfa.DataLoader) -> None:
        self.one, self.sampled, self.epoch = one, loader.sampled, 0

    def __iter__(self):
        self.epoch += 1
        return (self.one[batch] for batch in self.sampled.batches(self.epoch - 1))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, enfa.CompiledDataset, int]:
    """Its folder, all in one table, and memory for a window or two."""
    graphs = random_graphs(sum(SIZES), 9, seed=3, channels=[3], edge_channels=[3])
    for graph in graphs:
        graph.y = torch.randn(1, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(graph.num_nodes))
    folder = tmp_path_factory.mktemp("sharded")
    write_shards(folder, graphs, enfa.NodeMarking(), small_model(), SIZES)
    large = enfa.ShardedDataset.open(folder)
    memory = int(6 * (large.windows.size * SIZES).max())
    return folder, enfa.compile(graphs, enfa.NodeMarking(), small_model(), progress=False, unshared=None), memory


def _assert_same(found: dict[str, Any], expected: dict[str, torch.Tensor]) -> None:
    assert any("running_var" in name for name in expected)
    for name, value in expected.items():
        torch.testing.assert_close(torch.as_tensor(found[name], dtype=value.dtype), value, rtol=1e-10, atol=1e-10)


def test_as_on_one_table(dataset: tuple[Path, enfa.CompiledDataset, int]) -> None:
    folder, one, memory = dataset
    sharded = enfa.ShardedDataset.open(folder, memory)
    loader = enfa.DataLoader(sharded, BATCH, True, seed=5)
    assert len(loader.sampled.cuts(0)) > 2
    models = small_model(), small_model()
    losses = [trained(given, model, BATCH) for given, model in zip((loader, _Ordered(one, loader)), models)]
    assert len(losses[0]) == 16 and losses[0][-1] < losses[0][0]
    np.testing.assert_allclose(*losses, rtol=1e-10)
    _assert_same(models[0].state_dict(), models[1].state_dict())


@pytest.mark.long
def test_two_ranks_are_one(dataset: tuple[Path, enfa.CompiledDataset, int]) -> None:
    folder, one, memory = dataset
    loader = enfa.DataLoader(enfa.ShardedDataset.open(folder, memory), BATCH, True, seed=5)
    model = small_model()
    expected = trained(_Ordered(one, loader), model, BATCH)
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    with mp.Manager() as manager:
        results = manager.dict()
        mp.spawn(rank_of_shards, (port, folder, memory, results), nprocs=2)
        ranks = [results[rank] for rank in (0, 1)]
    np.testing.assert_allclose(np.sum([losses for losses, _, _ in ranks], 0), expected, rtol=1e-10)
    for _, state, read in ranks:
        _assert_same(state, {name: value.double() for name, value in model.state_dict().items()})
        assert read < 2 * len(SIZES)  # not every shard in every epoch: its own, and some of the other's
