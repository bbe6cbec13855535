"""What is refused in a lifted model is said in PyG's words: it has no bag whose verbs it could use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.nn import GINConv, SAGPooling, TopKPooling, global_add_pool, global_mean_pool
from torch_geometric.utils import dropout_edge, dropout_node

import enfa
from enfa.testing import random_graphs


class Net(nn.Module):
    """Does something with its rows."""

    def __init__(self, does: Callable[..., Any]) -> None:
        super().__init__()
        self.conv, self.does = GINConv(nn.Linear(4, 8)), does
        self.topk, self.sag, self.asap = TopKPooling(8), SAGPooling(8), pyg.ASAPooling(8)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return self.does(self, self.conv(x, edge_index), edge_index, batch)


def _message(does: Callable[..., Any]) -> str:
    with pytest.raises(TypeError) as error:
        enfa.make_plan(random_graphs(3, 6), enfa.NodeMarking(), enfa.lift(Net(does)))
    return str(error.value)


CASES: list[tuple[Callable[..., Any], str]] = [
    (lambda self, h, edges, batch: h.mean(0), "mean along dim=0 mixes rows, .*: use global_mean_pool(x, batch), or dim=-1"),
    (lambda self, h, edges, batch: h.sum(0, keepdim=True), "use global_add_pool(x, batch), or dim=-1"),
    (lambda self, h, edges, batch: h.max(0)[0], "use global_max_pool(x, batch), or dim=-1"),
    (lambda self, h, edges, batch: global_add_pool(h, None), "use global_add_pool(x, batch), or dim=-1"),
    (lambda self, h, edges, batch: h.softmax(0), "weigh rows in the pool (torch_geometric.nn.aggr.AttentionalAggregation)"),
    (lambda self, h, edges, batch: h[0], "getitem picks rows, .*: take columns as h[:, a:b]; torch.where"),
    (lambda self, h, edges, batch: torch.cat([h, h]), "join columns with dim=1; pooled[batch] brings what was pooled"),
    (lambda self, h, edges, batch: torch.roll(h, 1), "pool first (global_add_pool(x, batch)), pass messages (by a conv), or"),
    (lambda self, h, edges, batch: h + global_mean_pool(h, batch), "Rows of subgraphs (pooled[batch] brings what was pooled"),
    (lambda self, h, edges, batch: h.tolist(), "with head='graph'"),
    (lambda self, h, edges, batch: h * (1 / h.size(0)), "use global_mean_pool(x, batch) for a mean"),
    (lambda self, h, edges, batch: h + torch.ones(7, 8), "compute it from Rows (x, edge_attr), or"),
    (lambda self, h, edges, batch: self.topk(h, edges, None, batch)[0], "got TopKPooling, .*(torch_geometric.nn.aggr.Atten"),
    (lambda self, h, edges, batch: self.sag(h, edges, None, batch)[0], "got SAGPooling, which picks or merges"),
    (lambda self, h, edges, batch: self.asap(h, edges, None, batch)[0], "got ASAPooling, which picks or merges"),
    (lambda self, h, edges, batch: self.conv(h, dropout_edge(edges, 0.2)[0]), "drop between layers instead (F.dropout, torch"),
    (lambda self, h, edges, batch: self.conv(h, dropout_node(edges, 0.2)[0]), "drop between layers instead (F.dropout, torch"),
]  # fmt: skip


@pytest.mark.parametrize(("does", "says"), CASES, ids=[says for _, says in CASES])
def test_what_to_do_instead(does: Callable[..., Any], says: str) -> None:
    said = _message(does)
    assert "bag." not in said
    assert all(part in said for part in says.split(".*")), said


class Named(nn.Module):
    def forward(self, feats: Tensor, adj: Tensor, b: Tensor) -> Tensor:
        return feats


def test_arguments_of_other_names() -> None:
    with pytest.raises(TypeError, match=r"got Named with forward\(feats, adj, b\): rename its arguments"):
        enfa.lift(Named())
