"""Packed batches are the plain loader's, whoever makes them."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import enfa
import enfa.batch.static.workers as workers_module
from enfa.batch.static.packed import Packed, PackedLoader
from enfa.testing import random_graphs


@pytest.fixture(scope="module")
def model() -> enfa.DSGNN:
    torch.manual_seed(0)
    return enfa.DSGNN([5, 3], 6, 2, 3, "gine", edge_channels=[4, 3], jk="concat").double().eval()


@pytest.fixture(scope="module")
def compiled(graphs: list[Data], model: enfa.DSGNN) -> enfa.CompiledDataset:
    return enfa.compile(graphs, enfa.NodeMarking(), model.spec, progress=False)


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_same_batches_as_the_plain_loader(compiled: enfa.CompiledDataset, model: enfa.DSGNN, workers: int) -> None:
    plain = enfa.DataLoader(compiled, 5, shuffle=True, seed=3)
    packed = PackedLoader(compiled, model.needs, 5, True, workers, 3)
    for _ in range(3):
        one, other = list(plain), []
        for batch in packed:
            assert isinstance(batch, Packed)
            with torch.no_grad():
                other.append((batch.graphs, model(batch.plan)))
        assert len(one) == len(other) == len(packed)
        for plan, (ids, out) in zip(one, other):
            assert plan.graph_ids.tolist() == ids.tolist()
            torch.testing.assert_close(out, model(plan).detach(), rtol=1e-12, atol=1e-12)
    packed.close()


@pytest.mark.parametrize("workers", [0, 2])
def test_bits_do_not_depend_on_workers_nor_on_what_was_broken_off(
    compiled: enfa.CompiledDataset, model: enfa.DSGNN, workers: int
) -> None:
    reference, loader = (PackedLoader(compiled, model.needs, 4, True, w, 1) for w in (0, workers))
    epochs = [[(b.block.clone(), b.graphs) for b in reference] for _ in range(4)]
    for i, _ in enumerate(loader):
        if i == 1:
            break
    for epoch in (1, 2):
        for found, (block, graphs) in zip(loader, epochs[epoch], strict=True):
            assert np.array_equal(found.graphs, graphs)
            # what lies between two arrays is never read
            parts = zip(found.bucket.arrays(found.block.numpy()), found.bucket.arrays(block.numpy()))
            assert all(np.array_equal(a, b) for a, b in parts)
    loader.set_epoch(1)
    assert [b.graphs.tolist() for b in loader] == [g.tolist() for _, g in epochs[1]]
    loader.close()


class _Copied:
    """An event that is over when somebody waits for it."""

    over = False

    def synchronize(self) -> None:
        self.over = True


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_blocks_stay_until_three_more_were_taken_and_they_are_copied(
    compiled: enfa.CompiledDataset, model: enfa.DSGNN, workers: int
) -> None:
    loader, held = PackedLoader(compiled, model.needs, 4, True, workers, 1), []
    for _ in range(6):
        for batch in loader:
            time.sleep(0.002)  # for workers to do what they must not
            batch.copied = _Copied()
            held.append((batch, batch.block.clone()))
            assert all(torch.equal(b.block, block) for b, block in held[-4:])
            written_again = [b for b, block in held if not torch.equal(b.block, block)]
            assert all(b.copied.over for b in written_again)
    assert written_again
    loader.close()


def test_unshuffled_batches_are_kept(compiled: enfa.CompiledDataset, model: enfa.DSGNN) -> None:
    kept, made = (PackedLoader(compiled, model.needs, 5, num_workers=1, keep=keep) for keep in (2**30, 0))
    passes = [[[b.graphs.tolist(), model(b.plan).sum().item()] for b in loader] for loader in (kept, kept, made, made)]
    assert passes[0] == passes[1] == passes[2] == passes[3]
    assert kept._workers is None and made._workers is not None
    made.close()


def test_a_batch_larger_than_any_seen_comes_unpadded(model: enfa.DSGNN) -> None:
    graphs = random_graphs(9, 6, channels=[5, 3], edge_channels=[4, 3], seed=1)
    compiled = enfa.compile(graphs, enfa.NodeMarking(), model.spec, progress=False)
    loader = PackedLoader(compiled, model.needs, 3, True, 1)
    for bucket in loader.buckets.all:
        bucket.sizes = bucket.sizes // 4
    for batch, plan in zip(loader, enfa.DataLoader(compiled, 3, shuffle=True)):
        assert batch.bucket is None
        torch.testing.assert_close(model(batch.plan), model(plan))
    assert loader.unpadded == 3
    loader.close()


def test_no_graphs(compiled: enfa.CompiledDataset, model: enfa.DSGNN) -> None:
    with pytest.raises(ValueError, match="is the split empty"):
        PackedLoader(compiled, model.needs, graphs=[])


def _right(loader: PackedLoader) -> bool:
    return all(packed.graphs.tolist() == packed.plan.graph_ids.tolist() for packed in loader)  # type: ignore[union-attr]


def test_going_on_after_an_interruption(
    compiled: enfa.CompiledDataset, model: enfa.DSGNN, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = PackedLoader(compiled, model.needs, 3, True, 2)
    read, calls = workers_module._read, []

    def interrupted(pipe: int, size: int) -> bytes:
        calls.append(pipe)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return read(pipe, size)

    monkeypatch.setattr(workers_module, "_read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _right(loader)
    assert _right(loader) and _right(loader)
    loader.close()


def test_two_passes_at_a_time_are_refused(compiled: enfa.CompiledDataset, model: enfa.DSGNN) -> None:
    loader = PackedLoader(compiled, model.needs, 3, True)
    with pytest.raises(RuntimeError, match="one pass over a loader at a time"):
        list(zip(loader, loader))
    assert _right(loader)


@pytest.mark.parametrize("context", [None, "mpnn"])
def test_a_dataset_with_more_kinds_of_edges_than_before_is_not_padded(context: str | None) -> None:
    """Also where they were so few that no lists of messages by kind were made."""
    sizes = {"channels": [5, 3], "edge_channels": [8, 3]}
    if context is None:
        model = enfa.DSGNN([5, 3], 6, 2, 2, "gine", edge_channels=[8, 3]).double().eval()
    else:
        model = enfa.DSSGNN([5, 3], 6, 2, 2, "gine", context, edge_channels=[8, 3]).double().eval()
    first = random_graphs(8, 9, seed=1, **sizes | {"edge_channels": [4, 3]})
    compiled = enfa.compile(first, enfa.NodeMarking(), model.spec, progress=False)
    loader = PackedLoader(compiled, model.needs, 4, keep=0)
    assert len(compiled[:4].edge_mark) <= 16 and all(batch.bucket is not None for batch in loader)
    compiled.extend(random_graphs(8, 9, seed=2, **sizes))
    assert len(compiled[:4].edge_mark) > 16
    for batch in loader:
        assert batch.bucket is None
        torch.testing.assert_close(model(batch.plan), model(compiled.plan(batch.graphs)), rtol=1e-10, atol=1e-10)
