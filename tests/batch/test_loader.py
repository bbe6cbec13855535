"""Batches: their order, their size, and who cuts them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch_geometric.loader as pyg
from programs import layers
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GINConv

import enfa
from enfa.batch.dataset import CompiledDataset
from enfa.batch.static.packed import PackedLoader
from enfa.testing import random_graphs


@pytest.fixture(scope="module")
def compiled(graphs: list[Data]) -> CompiledDataset:
    return enfa.compile(graphs, enfa.NodeMarking(), layers(3, edges=True), progress=False)


def _ids(loader: enfa.DataLoader) -> list[list[int]]:
    return [plan.graph_ids.tolist() for plan in loader]


def _flat(batches: list[list[int]]) -> list[int]:
    return [graph for batch in batches for graph in batch]


def test_order_is_a_function_of_seed_and_epoch(compiled: CompiledDataset) -> None:
    first, again, other = (enfa.DataLoader(compiled, 5, shuffle=True, seed=s) for s in (1, 1, 2))
    epochs = [_ids(first) for _ in range(3)]
    np.random.seed(99)
    assert [_ids(again) for _ in range(3)] == epochs
    assert _ids(other) != epochs[0]
    assert len({str(epoch) for epoch in epochs}) == 3
    assert all(sorted(_flat(epoch)) == list(range(len(compiled))) for epoch in epochs)
    first.set_epoch(1)
    assert [_ids(first), _ids(first)] == epochs[1:]
    first.sampler.set_epoch(2)  # where trainers look for it
    assert _ids(first) == epochs[2]


def test_scripts_count_the_graphs_of_a_loader(compiled: CompiledDataset) -> None:
    """As PyG's tutorials do, which divide by it."""
    assert len(enfa.DataLoader(compiled, 5).dataset) == len(compiled)
    assert len(enfa.DataLoader(compiled, 5, graphs=range(3)).dataset) == 3


def test_a_pass_that_is_broken_off_counts(compiled: CompiledDataset) -> None:
    loader, whole = (enfa.DataLoader(compiled, 5, shuffle=True, seed=1) for _ in range(2))
    epochs = [_ids(whole) for _ in range(4)]
    for plan in loader:
        assert plan.graph_ids.tolist() == epochs[0][0]
        assert len(loader) == len(epochs[0])
        break
    assert _ids(loader) == epochs[1]
    unfinished = iter(loader)
    next(unfinished)
    loader.set_epoch(3)
    del unfinished  # ends here, and must not push the epoch on
    assert _ids(loader) == epochs[3]


def test_without_shuffle_the_order_is_that_of_the_graphs(compiled: CompiledDataset) -> None:
    loader = enfa.DataLoader(compiled, 4, graphs=[9, 3, 5, 1, 7, 8])
    assert _ids(loader) == _ids(loader) == [[9, 3, 5, 1], [7, 8]]
    assert len(loader) == 2
    short = enfa.DataLoader(compiled, 4, graphs=[9, 3, 5, 1, 7, 8], drop_last=True)
    assert len(short) == 1 and _ids(short) == [[9, 3, 5, 1]]
    mask = np.zeros(len(compiled), bool)
    mask[[4, 6]] = True
    assert _ids(enfa.DataLoader(compiled, 4, graphs=mask)) == [[4, 6]]


class _Unread(nn.Module):
    """Computes a step that nothing reads."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = GINConv(nn.Linear(4, 4)), nn.Linear(4, 1)

    def forward(self, bag: enfa.Bag) -> torch.Tensor:
        h = bag.propagate(self.conv, torch.cat([bag.x, bag.mark], 1))
        bag.propagate(self.conv, h)
        return self.head(bag.pool(bag.pool(h, "sum"), "mean"))


def test_max_rows_with_a_step_that_nothing_reads() -> None:
    graphs, model = random_graphs(6, 7, channels=3), _Unread().double()
    compiled = enfa.compile(graphs, enfa.NodeMarking(), model, progress=False)
    loader = enfa.DataLoader(compiled, 4, max_rows=20)
    assert sorted(_flat(_ids(loader))) == list(range(6)) and len(_ids(loader)) > 2
    expected = model(enfa.make_plan(graphs, enfa.NodeMarking(), model, "full"))
    torch.testing.assert_close(torch.cat([model(plan) for plan in loader]), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("max_rows", [1, 60, 150, 10**9])
def test_max_rows(compiled: CompiledDataset, max_rows: int, shuffle: bool) -> None:
    loader = enfa.DataLoader(compiled, 8, shuffle=shuffle, max_rows=max_rows)
    cost = compiled.rows_per_graph()
    for _ in range(2):
        expected, plans = len(loader), list(loader)
        assert len(plans) == expected
        assert sorted(g for p in plans for g in p.graph_ids.tolist()) == list(range(len(compiled)))
        for plan in plans:
            assert plan.num_graphs <= 8
            larger = int((cost[plan.graph_ids.numpy()] > 3).sum())  # than a node by itself, with a row in each of three layers
            assert larger <= 1 or sum(plan.cost().rows) <= max_rows + 3 * (plan.num_graphs > larger)
    for batch, following in itertools.pairwise(_ids(enfa.DataLoader(compiled, 8, max_rows=max_rows))):
        assert len(batch) == 8 or cost[batch].sum() + cost[following[0]] > max_rows  # no batch ends too early


@pytest.mark.parametrize("kind", ["distinct", "ego", "full"])
def test_max_rows_leaves_no_node_by_itself(kind: str) -> None:
    """Of whose one pair BatchNorm has no statistics."""
    one = Data(x=torch.ones(1, 3), edge_index=torch.zeros(2, 0, dtype=torch.int64))
    large = [graph for graph in random_graphs(20, 9, channels=3, seed=2) if graph.num_nodes > 4][:6]
    graphs, model = [one, large[0], large[1], one, large[2], *large[3:6], one], enfa.DSGNN(3, 8, 2, num_layers=2)
    compiled = enfa.compile(graphs, enfa.NodeMarking(), model, kind=kind, progress=False)
    cost = compiled.rows_per_graph()
    assert cost[0] == 2 and cost[1:3].min() > 2
    loader = enfa.DataLoader(compiled, 4, max_rows=3)
    assert _ids(loader) == [[0, 1], [2], [3, 4], [5], [6], [7, 8]]
    for plan in loader:
        model.train()(plan)
    for options in ({}, {"seed": 1}, {"seed": 2}):
        for plan in enfa.DataLoader(compiled, 4, shuffle=True, max_rows=int(cost.max()), **options):
            model(plan)
    assert _ids(enfa.DataLoader(compiled, 1, max_rows=3)) == [[graph] for graph in range(9)]  # as asked for
    assert _ids(enfa.DataLoader(compiled, 4, max_rows=3, drop_last=True))[-1] == [7]
    assert _ids(enfa.DataLoader(compiled, 4, max_rows=10**9)) == _ids(enfa.DataLoader(compiled, 4))


@pytest.mark.parametrize("kind", ["distinct", "full"])
def test_a_last_graph_of_one_node_gets_another_for_company(kind: str, tmp_path: Path) -> None:
    one = Data(x=torch.ones(1, 3), edge_index=torch.zeros(2, 0, dtype=torch.int64))
    graphs = [graph for graph in random_graphs(20, 9, channels=3, seed=2) if graph.num_nodes > 4][:8]
    model, policy = enfa.DSGNN(3, 8, 2, num_layers=2).train(), enfa.NodeMarking()
    compiled = enfa.compile([*graphs, one], policy, model, kind=kind, progress=False)
    enfa.compile([*graphs, one], policy, model, kind=kind, progress=False, out=tmp_path, shard_size=3, workers=1)
    for read in (compiled, enfa.ShardedDataset.open(tmp_path)):
        loader = enfa.DataLoader(read, 4)
        assert len(loader) == 3 and _ids(loader) == [[0, 1, 2, 3], [4, 5, 6], [7, 8]]
        for epoch in range(9):  # in some of which it is the last one
            found = list(enfa.DataLoader(read, 4, shuffle=True, seed=epoch))
            assert sorted(g for plan in found for g in plan.graph_ids.tolist()) == list(range(9)) and len(found) == 3
            for plan in found:
                model(plan)
        packed = PackedLoader(read, model, 4)
        assert [each.graphs.tolist() for each in packed] == _ids(loader)
        assert _ids(enfa.DataLoader(read, 4, drop_last=True)) == [[0, 1, 2, 3], [4, 5, 6, 7]]
        assert _ids(enfa.DataLoader(read, 2))[-2:] == [[6], [7, 8]] and len(_ids(enfa.DataLoader(read, 1))) == 9
    others = enfa.compile([*graphs, one], policy, enfa.DSGNN(3, 8, 2, num_layers=2, norm="layer"), kind=kind, progress=False)
    assert _ids(enfa.DataLoader(others, 4))[1:] == [[4, 5, 6, 7], [8]], "which needs no statistics"
    two = enfa.compile([one, graphs[0], one], policy, model, kind=kind, progress=False)
    assert _ids(enfa.DataLoader(two, 2)) == [[0, 1], [2]], "it would leave the same behind"
    with pytest.raises(ValueError, match=r"got 1: put another graph into the batch \(another batch_size, or drop_last=True\)"):
        model(two[[0]])


# a process that is spawned imports everything anew, which takes seconds
@pytest.mark.parametrize(("context", "workers"), [("fork", 2), pytest.param("spawn", 1, marks=pytest.mark.long)])
def test_workers_give_identical_batches(
    compiled: CompiledDataset, context: str, workers: int, assert_identical: Callable
) -> None:
    here = enfa.DataLoader(compiled, 6, shuffle=True, seed=4, max_rows=400)
    there = enfa.DataLoader(
        compiled, 6, shuffle=True, seed=4, max_rows=400, num_workers=workers, multiprocessing_context=context
    )
    for _ in range(2):  # workers persist from epoch to epoch
        one, other = list(here), list(there)
        assert len(one) == len(other) > 2
        for mine, theirs in zip(one, other):
            assert_identical(mine, theirs)


def test_several_loaders_share_one_dataset(compiled: CompiledDataset) -> None:
    train, valid = (enfa.DataLoader(compiled, 3, graphs=part) for part in (range(12), range(12, 23)))
    pairs = list(zip(train, valid))
    assert _flat([a.graph_ids.tolist() for a, _ in pairs]) == list(range(12))
    assert _flat([b.graph_ids.tolist() for _, b in pairs]) == list(range(12, 23))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "Expected batch_size to be an integer >= 1, got 0"),
        ({"batch_size": True}, "Expected batch_size to be an integer >= 1, got True"),
        ({"max_rows": 0}, "Expected max_rows to be an integer >= 1, got 0"),
        ({"max_rows": 2.5}, "Expected max_rows to be an integer >= 1, got 2.5"),
        ({"seed": -1}, "Expected seed to be an integer >= 0, got -1"),
        ({"graphs": []}, "is the split empty"),
        ({"graphs": [1, 1]}, "at most once"),
        ({"graphs": [99]}, "Expected graphs 0 to 22"),
        ({"shufle": True}, "shufle"),
    ],
)
def test_wrong_options(compiled: CompiledDataset, options: dict, message: str) -> None:
    with pytest.raises((ValueError, IndexError, TypeError), match=message):
        enfa.DataLoader(compiled, **options)


def test_graphs_have_to_be_compiled_first(graphs: list[Data]) -> None:
    with pytest.raises(TypeError, match=r"^Expected what enfa.compile\(graphs, policy, model\) returns, .*got list: compile"):
        enfa.DataLoader(graphs, 4)


def test_a_batch_comes_from_its_worker_in_one_block(compiled: CompiledDataset) -> None:
    """PyTorch opens a connection for every tensor that it sends."""
    here, there = (list(enfa.DataLoader(compiled, 6, num_workers=n)) for n in (0, 1))
    assert all(len({t.untyped_storage().data_ptr() for t in plan.tensors()}) > 5 for plan in here)
    for plan in there:
        plan.y = plan.graph_ids = None  # copies
    assert all(len({t.untyped_storage().data_ptr() for t in plan.tensors()}) == 1 for plan in there)
    counted = enfa.DataLoader(compiled, 6, num_workers=1, collate_fn=_count_graphs)
    assert [count.tolist() for count in counted] == [plan.num_graphs for plan in here]


def _count_graphs(plan: enfa.Bag) -> torch.Tensor:
    return torch.tensor(plan.num_graphs)


def test_what_a_loop_keeps_of_a_batch_does_not_keep_the_batch(compiled: CompiledDataset) -> None:
    for plan in enfa.DataLoader(compiled, 6, num_workers=1):
        for kept in (plan.y, plan.graph_ids):
            assert kept.untyped_storage().nbytes() == kept.numel() * kept.itemsize


def test_a_collate_fn_of_another_loader_is_taken_as_it_was_given(compiled: CompiledDataset) -> None:
    first = enfa.DataLoader(compiled, 6, num_workers=1, collate_fn=_count_graphs)
    second = enfa.DataLoader(compiled, 6, num_workers=1, collate_fn=first.collate_fn)
    assert [count.tolist() for count in second] == [6, 6, 6, 5]


def test_a_pass_within_a_pass_is_refused_where_workers_cannot_do_both(compiled: CompiledDataset) -> None:
    here = enfa.DataLoader(compiled, 6)
    assert sum(1 for _ in here for _ in here) == 16
    there = enfa.DataLoader(compiled, 6, num_workers=1)
    with pytest.raises(RuntimeError, match="one pass at a time"):
        sum(1 for _ in there for _ in there)
    anew = enfa.DataLoader(compiled, 6, num_workers=1, persistent_workers=False)
    assert len(list(zip(anew, anew))) == 4
    next(iter(there))  # one that is broken off is no pass any more
    assert len(list(there)) == 4


def test_a_score_without_a_draw_is_refused(compiled: CompiledDataset) -> None:
    with pytest.raises(ValueError, match="Expected 'draw'"):
        enfa.DataLoader(compiled, 6, score=np.ones(3))


@pytest.mark.parametrize("shard", [2, (0, 1, 2), (0.5, 2), (2, 2), "01"])
def test_a_shard_is_a_rank_and_their_number(shard: object) -> None:
    compiled = enfa.compile(random_graphs(3, 5, channels=3), enfa.NodeMarking(), enfa.DSGNN(3, 4, 2, 1), progress=False)
    with pytest.raises(ValueError, match=r"Expected shard to be \(rank, ranks\) with 0 <= rank < ranks, got"):
        enfa.DataLoader(compiled, 2, shard=shard)  # type: ignore[arg-type]


@pytest.mark.parametrize("loader", [pyg.DataLoader, torch.utils.data.DataLoader])
def test_loaders_that_join_graphs_are_refused(compiled: CompiledDataset, loader: type) -> None:
    for dataset in (compiled, torch.utils.data.Subset(compiled, [0, 1])):
        with pytest.raises(TypeError, match=r"^Expected enfa\.DataLoader\(compiled, batch_size\) for a CompiledDataset, got"):
            next(iter(loader(dataset, 2)))
    alone = torch.utils.data.DataLoader(compiled, batch_size=None)  # which joins none
    assert [plan.num_graphs for plan in alone] == [1] * len(compiled)


@pytest.mark.parametrize("option", ["sampler", "batch_sampler"])
def test_samplers_of_ones_own_are_refused(compiled: CompiledDataset, option: str) -> None:
    weighted = torch.utils.data.WeightedRandomSampler([1.0] * len(compiled), len(compiled))
    with pytest.raises(TypeError, match=f"Expected batches that this loader makes, .*, got {option}: choose graphs"):
        enfa.DataLoader(compiled, 5, **{option: weighted})


def test_a_part_of_a_dataset_is_named_by_its_graphs(compiled: CompiledDataset) -> None:
    part = torch.utils.data.Subset(compiled, [0, 1])
    with pytest.raises(TypeError, match=r"got a Subset of it: pass subset\.dataset, and graphs=subset\.indices$"):
        enfa.DataLoader(part, 5)
    assert len(list(enfa.DataLoader(part.dataset, 1, graphs=part.indices))) == 2


def test_a_generator_that_would_draw_no_order_is_refused(compiled: CompiledDataset) -> None:
    generator = torch.Generator()
    with pytest.raises(TypeError, match="Expected seed="):
        enfa.DataLoader(compiled, 5, shuffle=True, generator=generator)
    with pytest.raises(TypeError, match="Expected seed="):
        enfa.DataLoader(compiled, 5, draw=enfa.Subsample(enfa.NodeMarking(), count=2), generator=generator)
    assert len(list(enfa.DataLoader(compiled, 5, generator=generator))) > 1
