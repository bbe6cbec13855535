"""A padded plan of steps computes what the plan itself computes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from static_models import EVERY_MODEL, Small, assert_same, graphs_for, model_for, results
from torch import nn
from torch_geometric.data import Data

import enfa
from enfa.batch.static.packed import PackedLoader
from enfa.batch.static.padding import Bucket, Form, pad_plan
from enfa.nn.bag import Bag, make_plan
from enfa.plan.derived.pack import layout_of
from enfa.plan.derived.prepare import lean, prepare
from enfa.plan.mould import Mould
from enfa.testing import degenerate_graphs, random_graphs


def _lean(graphs: list[Data], model: nn.Module) -> Bag:
    bag = make_plan(graphs, enfa.NodeMarking(), model)
    return lean(prepare(bag, bag.program.needs), bag.program.needs)


def _larger(plan: Bag, seed: int) -> dict[str, int]:
    """Up to twice as large and more."""
    form, rng = Form(plan), np.random.default_rng(seed)
    least = form.sizes(plan.tensors())
    return dict(zip(form.names, (least + rng.integers(0, least + 20) * (least > 0)).tolist()))


@pytest.mark.parametrize("name", EVERY_MODEL)
def test_same_as_unpadded(name: str) -> None:
    graphs, model = graphs_for(name), model_for(name)
    bag, plan = make_plan(graphs, enfa.NodeMarking(), model), _lean(graphs, model)
    rows = {"Nodes": bag.num_nodes, "root": bag.num_subgraphs}.get(name, len(graphs))  # those behind are padding
    for train in (True, False):
        expected = results(model, bag, train)
        for sizes in (None, _larger(plan, 1), _larger(plan, 2)):
            assert_same(results(model, pad_plan(plan, sizes), train, rows), expected)


def test_rows_that_nothing_counts_are_padded_too() -> None:
    graphs, model = graphs_for("Plain"), model_for("Plain")
    bag = make_plan(graphs, enfa.NodeMarking(), model)
    expected = results(model, bag)
    bag.program = replace(bag.program, counted=False)
    plan = lean(prepare(bag, bag.program.needs), bag.program.needs)
    assert all(table.copies is None or table.copies.is_meta for table in plan.tables)
    for sizes in (None, _larger(plan, 1)):
        assert_same(results(model, pad_plan(plan, sizes)), expected)


def test_what_padding_holds_does_not_matter() -> None:
    """Neither NaN in it nor what a norm would make of it comes out."""
    graphs, model = graphs_for("Net"), model_for("Net")
    plan, bag = _lean(graphs, model), make_plan(graphs, enfa.NodeMarking(), model)
    padded = pad_plan(plan, _larger(plan, 1))
    assert torch.equal(padded.x_rows[len(plan.x_rows) :], plan.x_rows[-1:].expand(len(padded.x_rows) - len(plan.x_rows), -1))
    padded.x_rows[len(plan.x_rows) :] = float("nan")
    found, expected = ({k: v for k, v in results(model, p).items() if "buffer" in k or k == "output"} for p in (padded, bag))
    for key, value in expected.items():
        torch.testing.assert_close(found[key], value, rtol=1e-12, atol=1e-12)


def test_sizes_that_do_not_exist_or_do_not_suffice() -> None:
    plan = _lean(graphs_for("gin"), model_for("gin"))
    with pytest.raises(ValueError, match="Expected sizes that the plan has, got rowz"):
        pad_plan(plan, {"rowz": 3})
    with pytest.raises(ValueError, match=r"Expected rows 1 >= .* to pad a plan, got less"):
        pad_plan(plan, {"rows 1": 1})


def test_a_bucket_gives_every_batch_the_same_layout() -> None:
    graphs = random_graphs(20, 8, seed=1, channels=3)
    model = model_for("Net").eval()
    plans = [_lean(graphs[i : i + 4], model) for i in range(0, 20, 4)]
    form = Form(plans[0])
    bucket = Bucket(form, np.max([form.sizes(plan.tensors()) for plan in plans], 0))
    layouts = set()
    for plan in plans:
        block = torch.empty(bucket.nbytes, dtype=torch.uint8)
        bucket.write(plan.tensors(), bucket.arrays(block.numpy()))
        layouts.add(layout_of(bucket.view(block)))
        torch.testing.assert_close(model(bucket.view(block)), model(plan))
    assert len(layouts) == 1 and len({layout_of(plan) for plan in plans}) > 1


def test_a_single_pair_is_not_padded() -> None:
    """BatchNorm refuses it, and must get to see it."""
    lonely = degenerate_graphs(3)["one node"]
    with pytest.raises(ValueError, match="at least two"):
        pad_plan(_lean([lonely], model_for("Net")))


class _Averages(Small):
    """By a number that differs from batch to batch."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, bag):
        return self.head(bag.pool(bag.pool(self.start(bag)))) / getattr(bag, self.name)


@pytest.mark.parametrize("name", ["num_pairs", "num_nodes", "num_subgraphs"])
def test_numbers_of_a_padded_batch_are_not_told(name: str) -> None:
    graphs, model = graphs_for("Net"), _Averages(name).double()
    plan = _lean(graphs, model)
    model(plan)
    with pytest.raises(TypeError, match="reads no number of pairs, nodes or subgraphs of padded batches"):
        model(pad_plan(plan))


def test_a_mould_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread that looks at its first batch and finds a mould finds all that it is filled with."""
    model = enfa.DSGNN(3, 4, 1, 2)
    packed = next(iter(PackedLoader(enfa.compile(random_graphs(6), enfa.NodeMarking(), model, progress=False), model, 6)))
    bucket: Any = packed.bucket
    bucket._mould, bucket._leaves, seen = None, [], []

    def made(value: Any) -> Mould:
        seen.append(len(bucket._leaves))
        return Mould(value)

    monkeypatch.setattr("enfa.batch.static.padding.Mould", made)
    bucket.view(packed.block)
    assert seen == [len(bucket._leaves)] and seen[0] > 0
