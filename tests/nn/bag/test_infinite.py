"""Pools of rows that are infinite or no numbers: those that a subgraph lacks are no part of its pool."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import enfa


class Products(nn.Module):
    """The product of all features of a subgraph, as a sum of logarithms: that of 0 is minus infinity."""

    def __init__(self, how: str, act: str) -> None:
        super().__init__()
        self.how, self.act = how, act

    def forward(self, bag: enfa.Bag) -> Tensor:
        of_features = bag.x.log() if self.act == "log" else torch.where(bag.x == 0, bag.x / 0, bag.x)
        return bag.each(bag.pool(torch.cat([of_features, bag.x], 1) + 0 * bag.mark, self.how))


def _graph(x: list[float]) -> Data:
    there = torch.arange(len(x) - 1)
    return Data(x=torch.tensor(x)[:, None], edge_index=torch.stack([there, there + 1]))


@pytest.mark.parametrize("kind", ["ego", "distinct"])
@pytest.mark.parametrize("policy", [enfa.NodeDeletion(), enfa.EgoNets(1), enfa.NodeMarking()], ids=repr)
@pytest.mark.parametrize("how", ["sum", "mean"])
@pytest.mark.parametrize("act", ["log", "nan"])
def test_pools_of_subgraphs_without_them(kind: str, policy: enfa.Policy, how: str, act: str) -> None:
    graphs, model = [_graph([2.0, 0.0, 3.0, 0.5, 4.0]), _graph([1.5, 2.5]), _graph([0.0, 0.0, 1.0])], Products(how, act)
    full, found = (model(enfa.make_plan(graphs, policy, model, k)) for k in ("full", kind))
    assert not full.isfinite().all() and full.isfinite().any()
    torch.testing.assert_close(found, full, rtol=1e-6, atol=1e-6, equal_nan=True)
    sliced = model(enfa.compile(graphs, policy, model, progress=False, kind=kind)[[2, 0]])
    expected = model(enfa.make_plan([graphs[2], graphs[0]], policy, model, "full"))
    torch.testing.assert_close(sliced, expected, rtol=1e-6, atol=1e-6, equal_nan=True)
