"""A plan written straight into a block is the prepared plan copied there, byte for byte."""

from __future__ import annotations

import numpy as np
import pytest
from cases import POLICIES
from torch_geometric.data import Data

import enfa
from enfa.batch.fill import Filler
from enfa.batch.static.padding import Bucket, Form
from enfa.plan.prepare import lean, prepare
from enfa.testing import random_graphs

SIZE = {"channels": [5, 3], "edge_channels": [8, 3]}
MODELS = {
    "gin": enfa.DSGNN([5, 3], 6, 2, 3, "gin"),
    "gin, all tables": enfa.DSGNN([5, 3], 6, 2, 3, "gin", jk="concat"),
    "gcn, which reads degrees": enfa.DSGNN([5, 3], 6, 2, 2, "gcn"),
    "gine": enfa.DSGNN([5, 3], 6, 2, 2, "gine", edge_channels=[8, 3]),
    "gine, few kinds of edges": enfa.DSGNN([5, 3], 6, 2, 2, "gine", edge_channels=[4, 3]),
    "gine, all tables, one layer": enfa.DSGNN([5, 3], 6, 2, 1, "gine", edge_channels=[8, 3], jk="concat", readout="mean"),
}
BATCHES = [np.arange(b, b + 4) for b in (0, 4, 8)]


def _compiled(graphs: list[Data], policy: enfa.Policy, model: enfa.DSGNN) -> enfa.CompiledDataset:
    return enfa.compile(graphs, policy, model.spec, progress=False)


def _bucket(compiled: enfa.CompiledDataset, model: enfa.DSGNN) -> Bucket:
    """Large enough for all batches."""
    plans = [lean(prepare(compiled.plan(g), model.needs), model.needs) for g in BATCHES]
    form = Form(plans[0])
    return Bucket(form, np.max([form.sizes(plan.tensors()) for plan in plans], 0) + 3)


def _arrays(bucket: Bucket, value: int) -> list[np.ndarray]:
    return bucket.arrays(np.full(bucket.nbytes, value, np.uint8))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("policy", POLICIES)
def test_same_bytes(policy: str, name: str) -> None:
    few = "few" in name  # of them no lists are made
    model, graphs = MODELS[name], random_graphs(12, 24, seed=1, **SIZE | ({"edge_channels": [4, 3]} if few else {}))
    compiled = _compiled(graphs, POLICIES[policy], model)
    bucket = _bucket(compiled, model)
    assert Filler.takes(bucket.form.plan, model.needs)
    listed = ["kinds" in layer.links.cache for layer in bucket.form.plan.layers]
    assert all(has == ("gine" in name and not few) for has in listed)
    filler = Filler(bucket.form, model.needs)
    longest = 0
    for g in BATCHES:
        filled, copied = _arrays(bucket, 7), _arrays(bucket, 9)
        assert filler.fill(compiled.plan(g), [filler.block(bucket, filled)]) == 0
        tensors = bucket.form.tensors(prepare(compiled.plan(g), model.needs))
        assert tensors is not None
        bucket.write(tensors, copied)
        for k, (one, other) in enumerate(zip(filled, copied)):
            assert one.tobytes() == other.tobytes(), k
        longest = max(longest, max(t.shape[1] for t in tensors if t.ndim == 2 and len(t) == 3))
    assert longest > 1  # some lists were in pieces


def test_a_block_without_room_for_the_pieces_of_long_lists_is_passed_over() -> None:
    model, graphs = MODELS["gin, all tables"], random_graphs(12, 24, seed=1, **SIZE)
    compiled = _compiled(graphs, enfa.NodeMarking(), model)
    large = _bucket(compiled, model)
    sizes = np.where([name.endswith(" pieces") for name in large.form.names], 0, large.sizes)
    small = Bucket(large.form, sizes)
    filler, plan = Filler(large.form, model.needs), compiled.plan(BATCHES[0])
    tiny = Bucket(large.form, np.where(large.form.rows, 1, large.sizes))
    blocks = [filler.block(bucket, _arrays(bucket, 7)) for bucket in (tiny, small, large)]
    assert filler.fill(plan, blocks) == 2
    assert filler.fill(plan, blocks[:2]) is None


@pytest.mark.parametrize(
    "model",
    [
        enfa.DSSGNN([5, 3], 6, 2, 2),
        enfa.DSGNN([5, 3], 6, 2, 2, readout="max"),
        enfa.DSGNN([5, 3], 6, 2, 2, dropout=0.5),
        enfa.DSGNN([5, 3], 6, 2, 2, residual=True),
    ],
)
def test_other_parts_are_left_to_copying(model: enfa.DSGNN) -> None:
    plan = enfa.make_plan(random_graphs(3, 5, seed=1, **SIZE), enfa.NodeMarking(), model.spec)
    assert not Filler.takes(plan, model.needs)
