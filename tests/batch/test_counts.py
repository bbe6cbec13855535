"""Pools count equal rows in a byte where all counts of a dataset fit into one, and otherwise not: exact either way."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

import enfa
from enfa.batch.static.packed import PackedLoader
from enfa.plan.prepare import prepare
from enfa.plan.table import Plan

torch.manual_seed(0)
MODELS = {
    "joined from runs": enfa.DSGNN(2, 6, 2, 3, "gin", jk="concat"),
    "sliced": enfa.DSGNN(2, 6, 2, 3, "gine", edge_channels=[2], jk="concat"),
    "prepared and copied": enfa.DSGNN(2, 6, 2, 3, "gin", jk="concat", residual=True),
}


def _star(leaves: int) -> Data:
    """Marking a leaf changes the middle, and one layer later all other leaves, which stay equal."""
    ends = torch.stack([torch.zeros(leaves, dtype=torch.long), torch.arange(1, leaves + 1)])
    edge_index = torch.cat([ends, ends.flip(0)], 1)
    x = torch.zeros(leaves + 1, 2)
    x[0] = 1
    return Data(x=x, edge_index=edge_index, edge_attr=(torch.arange(2 * leaves) >= leaves).long()[:, None])


def _results(model: enfa.DSGNN, plan: Plan) -> list[Tensor]:
    model = deepcopy(model).double().eval()
    out = model(plan)
    (out * torch.arange(1, out.numel() + 1).reshape(out.shape)).sum().backward()
    return [out.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("leaves", "dtype"), [(127, torch.int8), (128, torch.int32), (300, torch.int32)])
def test_exact_whether_they_fit_or_not(leaves: int, dtype: torch.dtype, name: str) -> None:
    model = MODELS[name]
    graphs = [_star(n) for n in (3, leaves, 5, 9, 4, 7)]
    distinct, full = (
        enfa.compile(graphs, enfa.NodeMarking(), model.spec, kind=kind, progress=False) for kind in ("distinct", "full")
    )
    loader = PackedLoader(distinct, model.needs, 3, shuffle=True)
    for packed in loader:
        assert packed.bucket is not None
        expected = _results(model, full[packed.graphs])
        sliced = prepare(distinct.plan(packed.graphs, tables=True), model.needs)
        for plan in (packed.plan, sliced, distinct[packed.graphs]):
            for found, right in zip(_results(model, plan), expected, strict=True):
                torch.testing.assert_close(found, right, rtol=1e-10, atol=1e-10 * max(1.0, float(right.abs().max())))
        for plan in (packed.plan, sliced):  # also in a batch whose own counts would fit
            lists = plan.readout.cache["rows"]
            assert {lists.forward.weight.dtype, lists.backward.weight.dtype} == {dtype}


def test_blocks_are_smaller() -> None:
    """Marking the middle changes all leaves in every table."""
    model = MODELS["joined from runs"]
    graphs = [_star(n) for n in range(3, 9)]
    sizes = []
    for more in ([], [_star(200)]):
        compiled = enfa.compile([*graphs, *more], enfa.NodeMarking(), model.spec, progress=False)
        loader = PackedLoader(compiled, model.needs, 3, graphs=np.arange(6))
        plan = loader.buckets.all[-1].view(torch.empty(loader.buckets.all[-1].nbytes, dtype=torch.uint8))
        weights = [r.cache["rows"].forward.weight for r in plan.cache["readouts"]]
        sizes.append([w.nbytes for w in weights])
    assert sizes[1] == [4 * size for size in sizes[0]]


def test_plans_made_anew_are_of_one_type() -> None:
    """No batch knows what the others count, and all must fit into the same buckets."""
    model = enfa.DSSGNN(2, 6, 2, 2)
    graphs = [_star(n) for n in (3, 150, 5, 9)]
    compiled = enfa.compile(graphs, enfa.NodeMarking(), model.spec, ahead=False, progress=False)
    loader = PackedLoader(compiled, model.needs, 2)
    assert all(packed.bucket is not None for packed in loader)
