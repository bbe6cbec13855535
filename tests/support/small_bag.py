"""Rows of a small bag, with values of one's own."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GINConv, GINEConv

from enfa.edits import NodeMarking
from enfa.nn.bag import Bag, Rows, make_plan

ROWS = 6  # pairs of two nodes with an edge, and of two single ones


class Short(nn.Module):
    """Two tables of pairs, one of subgraphs, one of nodes, and edge features."""

    def forward(self, bag):
        nn.functional.batch_norm(bag.x, torch.zeros(2), torch.ones(2))  # rows are counted
        h = bag.propagate(GINConv(nn.Identity()), bag.x)
        bag.spread(bag.across(bag.x, "mean"))
        bag.propagate(GINConv(nn.Identity()), h)
        bag.propagate(GINEConv(nn.Identity()), h, bag.edge_attr.float())
        return bag.pool(bag.pool(h))


class Dropping(Short):
    """The same with dropout: rows are shared within a graph only."""

    def forward(self, bag):
        nn.functional.dropout(bag.x, 0.5, training=self.training)
        return super().forward(bag)


def small_graphs() -> list[Data]:
    pair = Data(x=torch.tensor([[0.0, 1.0], [1.0, 1.0]]), edge_index=torch.tensor([[0, 1], [1, 0]]))
    single = Data(x=torch.tensor([[2.0, 1.0]]), edge_index=torch.zeros(2, 0, dtype=torch.int64))
    other = Data(x=torch.tensor([[3.0, 1.0]]), edge_index=torch.zeros(2, 0, dtype=torch.int64))
    for graph, count in ((pair, 2), (single, 0), (other, 0)):
        graph.edge_attr = torch.ones(count, 2, dtype=torch.int64)
    return [pair, single, other]


def random_bits(count: int, seed: int = 0) -> list[Data]:
    """Random ones, with three feature columns."""
    random, found = torch.Generator().manual_seed(seed), []
    for _ in range(count):
        n = int(torch.randint(4, 9, (), generator=random))
        upper = (torch.rand(n, n, generator=random) < 0.4).triu(1)
        x = torch.randint(2, (n, 3), generator=random).float()
        found.append(Data(x=x, edge_index=(upper | upper.T).nonzero().T.contiguous()))
    return found


def small_bag(kind: str = "full", model: nn.Module | None = None) -> Bag:
    return make_plan(small_graphs(), NodeMarking(), model or Short(), kind)


def values(*shape: int, seed: int = 0) -> Tensor:
    """float64, between 0.1 and 0.9: in the domain of all functions."""
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 0.8 + 0.1


def rows_of(bag: Bag, value: Tensor) -> Rows:
    assert bag.tables[0].num_rows == len(value)
    return Rows(value, bag, 0)
