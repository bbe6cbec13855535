"""What ``forward(data)`` of a lifted model gets, and what a loop reads of its batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch_geometric.nn as pyg
from lifted import difference, lifted_results, pyg_results
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GINConv, global_add_pool

import enfa
from enfa.testing import assert_same_as_full, random_graphs


class Uncounted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.pool = GINConv(nn.Linear(4, 2)), pyg.MeanAggregation()

    def forward(self, data: Any) -> Tensor:
        h = self.conv(data.x, data.edge_index)
        return global_add_pool(h, data.batch) * self.pool(h, data.batch)


class Counted(Uncounted):
    """As scripts write it whose last graphs may have no nodes."""

    def forward(self, data: Any) -> Tensor:
        h = self.conv(data.x, data.edge_index)
        pooled = global_add_pool(h, data.batch, size=data.num_graphs)
        return pooled * self.pool(h, data.batch, dim_size=data.num_graphs)


def _graphs() -> list[Data]:
    return random_graphs(4, 6, seed=2, edge_channels=2)


def test_the_number_of_graphs() -> None:
    torch.manual_seed(0)
    model, other, policy = Counted().double(), Uncounted().double(), enfa.NodeMarking()
    other.load_state_dict(model.state_dict())
    expected = pyg_results(other, _graphs(), policy)
    for kind in ("full", "distinct"):
        assert difference(expected, lifted_results(model, _graphs(), policy, kind)) < 1e-10
    for head in ("subgraph", "graph"):
        assert_same_as_full(enfa.lift(model, head=head), policy, _graphs())


class Reads(Counted):
    def __init__(self, read: Callable[..., Any]) -> None:
        super().__init__()
        self.read = read

    def forward(self, data: Any) -> Tensor:
        return self.read(self, self.conv(data.x, data.edge_index), data)


@pytest.mark.parametrize(
    ("read", "sentence"),
    [
        (lambda self, h, data: data.num_nodes, r"got 'num_nodes': global_add_pool\(torch.ones_like\(x.*\), batch\) counts"),
        (lambda self, h, data: data.pos, r"got 'pos': join what nodes have \(pos\) to x before compiling; .*bag.graph_attr"),
        (lambda self, h, data: data.mark, "got 'mark': marks='argument' gives marks$"),
        (lambda self, h, data: self.pool(h, data.batch, dim_size=7), "got dim_size=7: leave dim_size away"),
        (lambda self, h, data: h * data.num_graphs, "mul"),
        (lambda self, h, data: 2 * data.num_graphs, "num_graphs .*given to a pool and nothing else"),
        (lambda self, h, data: data.num_graphs == 1, "num_graphs .*given to a pool and nothing else"),
        (lambda self, h, data: data.num_graphs in (1, 2), "num_graphs .*given to a pool and nothing else"),
        (lambda self, h, data: bool(data.num_graphs), "num_graphs .*given to a pool and nothing else"),
        (lambda self, h, data: range(data.num_graphs), "num_graphs .*given to a pool and nothing else"),
        (lambda self, h, data: data.num_graphs > 1, "num_graphs .*given to a pool and nothing else"),
    ],
    ids=["num_nodes", "pos", "mark", "dim_size", "times", "times two", "equal", "in", "bool", "range", "more"],
)
def test_what_data_have_not(read: Callable[..., Any], sentence: str) -> None:
    with pytest.raises((AttributeError, TypeError), match=sentence):
        enfa.make_plan(_graphs(), enfa.NodeMarking(), enfa.lift(Reads(read)))


def test_ones_count_nodes() -> None:
    graphs = _graphs()
    model = enfa.lift(Reads(lambda self, h, data: global_add_pool(torch.ones_like(data.x[:, :1]), data.batch)))
    found = model(enfa.make_plan(graphs, enfa.NodeMarking(), model))
    assert found.flatten().tolist() == [graph.num_nodes for graph in graphs]


def test_what_batches_have_elsewhere() -> None:
    graphs = _graphs()
    for number, graph in enumerate(graphs):
        graph.id, graph.smiles = number, "C"
    batch = enfa.compile(graphs, enfa.NodeMarking(), enfa.lift(Counted()), progress=False)[1:3]
    with pytest.raises(AttributeError, match=r"got 'id': it is there as batch.graph_attr\['id'\]$"):
        batch.id  # noqa: B018
    with pytest.raises(AttributeError, match=r"got 'smiles'; of numbers .*graph_attr has id; batch.graph_ids says which"):
        batch.smiles  # noqa: B018
    assert batch.graph_attr["id"].tolist() == batch.graph_ids.tolist() == [1, 2]
