"""Models that ask for every verb, for the tests."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import MLP, GATv2Conv, GINConv, GINEConv, GraphConv, SAGEConv

WIDTH = 6


def _gin(ins: int = WIDTH) -> GINConv:
    return GINConv(MLP([ins, WIDTH, WIDTH]))  # with a BatchNorm inside


class Net(nn.Module):
    """The design's own example."""

    def __init__(self, marks: int = 1) -> None:
        super().__init__()
        self.embed = nn.Linear(3 + marks, 32)
        self.convs = nn.ModuleList(GINConv(MLP([32, 32, 32])) for _ in range(4))  # PyG's own
        self.norms = nn.ModuleList(nn.BatchNorm1d(32) for _ in range(4))
        self.head = nn.Linear(32, 2)

    def forward(self, bag) -> Tensor:
        h = self.embed(torch.cat([bag.x, bag.mark], 1))
        for conv, norm in zip(self.convs, self.norms):
            h = norm(bag.propagate(conv, h)).relu()
        return self.head(bag.pool(bag.pool(h, "sum"), "mean"))


class Small(nn.Module):
    """What the others have in common."""

    def __init__(self, marks: int = 1) -> None:
        super().__init__()
        self.embed = nn.Linear(3 + marks, WIDTH)
        self.first, self.second = _gin(), _gin()
        self.norm, self.other = nn.BatchNorm1d(WIDTH), nn.BatchNorm1d(WIDTH)
        self.score = nn.Linear(WIDTH, 1)
        self.head = nn.Linear(WIDTH, 2)

    def start(self, bag) -> Tensor:
        h = self.embed(torch.cat([bag.x, bag.mark], 1))
        return self.norm(bag.propagate(self.first, h)).relu()


class Attention(Small):
    """Pools by a score for every row, and for every subgraph."""

    def forward(self, bag) -> Tensor:
        h = self.start(bag)
        pooled = self.other(bag.pool(h, "softmax", score=self.score(h)))
        return self.head(bag.pool(pooled, "softmax", score=self.score(pooled).tanh()))


class Context(Small):
    """A conv on the original graph, of what nodes are in all subgraphs: DSS."""

    def forward(self, bag) -> Tensor:
        h = self.start(bag)
        seen = self.other(bag.propagate(self.second, bag.across(h, "mean")))
        h = (self.norm(bag.propagate(self.second, h)) + bag.spread(seen)).relu()
        return self.head(bag.pool(bag.pool(h, "mean"), "sum"))


class Rooted(Small):
    """Roots of subgraphs, and nodes in their own subgraphs, by themselves and spread."""

    def forward(self, bag) -> Tensor:
        h = self.start(bag)
        h = h + bag.spread(bag.root(h)) * 0.5 + bag.spread(self.other(bag.diagonal(h)).relu())
        h = bag.propagate(self.second, h).relu()
        return self.head(bag.pool(bag.root(h), "mean") + bag.pool(bag.diagonal(h), "max"))


class Egos(Small):
    """GNN-AK: what subgraphs are becomes what their roots are, for messages of nodes and in the next round within subgraphs."""

    def forward(self, bag) -> Tensor:
        h = self.start(bag)
        found = bag.pool(bag.pool(h), "mean", to="nodes") + bag.pool(self.score(bag.root(h)), "sum", to="nodes")
        seen = self.other(bag.propagate(self.second, found) + found).relu()
        about = self.norm(bag.pool(bag.propagate(self.first, h + bag.spread(seen)), "max"))
        last = bag.pool(about, "softmax", self.score(about).tanh(), to="nodes") + bag.pool(about, "max", to="nodes")
        return self.head(bag.pool(last, "mean") + bag.pool(seen))


class Between(Small):
    """GNN-SSWL+: messages within subgraphs, between them, and the diagonal."""

    def forward(self, bag) -> Tensor:
        h = self.start(bag)
        for conv in (self.first, self.second):
            h = torch.relu(bag.propagate(conv, h) + bag.propagate(conv, h, along="subgraphs") + bag.spread(bag.diagonal(h)) + h)
        return self.head(bag.pool(bag.pool(self.norm(h), "max"), "max"))


class Union(Small):
    """SUN: sums over subgraphs, over nodes, roots and diagonals all meet in every row."""

    def forward(self, bag) -> Tensor:
        h = self.start(bag)
        parts = [
            bag.propagate(self.second, h), bag.spread(bag.pool(h, "mean")), bag.spread(bag.across(h, "max")),
            bag.spread(bag.root(h)), bag.spread(bag.diagonal(h)),
        ]  # fmt: skip
        h = self.norm(sum(parts[1:], parts[0])).relu()
        h = torch.cat([h, bag.propagate(self.second, h)], 1)[:, :WIDTH]
        return self.head(bag.pool(bag.pool(h), "mean"))


class Knowledge(Small):
    """Jumping knowledge, residual connections, dropout, layer norm."""

    def __init__(self, marks: int = 1) -> None:
        super().__init__(marks)
        self.drop, self.layer = nn.Dropout(0.3), nn.LayerNorm(WIDTH)
        self.last = nn.Linear(3 * WIDTH, 2)

    def forward(self, bag) -> Tensor:
        tables = [self.start(bag)]
        for conv in (self.first, self.second):
            tables.append(self.drop(self.layer(bag.propagate(conv, tables[-1])).relu() + tables[-1]))
        pooled = bag.pool(torch.cat(tables, 1), "sum")
        return self.last(bag.pool(self.drop(pooled), "mean"))


class Nodes(Small):
    """A row for every node."""

    def forward(self, bag) -> Tensor:
        h = self.start(bag)
        seen = bag.across(bag.propagate(self.second, h), "mean")
        seen = self.other(bag.propagate(self.first, seen) + seen)
        return self.head(bag.each(seen))


class Attending(Small):
    """Convs that attend, and others than GIN."""

    def __init__(self, marks: int = 1) -> None:
        super().__init__(marks)
        self.gat = GATv2Conv((WIDTH, WIDTH), WIDTH, add_self_loops=False)
        self.sage, self.graph = SAGEConv((WIDTH, WIDTH), WIDTH), GraphConv((WIDTH, WIDTH), WIDTH)

    def forward(self, bag) -> Tensor:
        h = self.start(bag)
        for conv in (self.gat, self.sage, self.graph):
            h = self.other(bag.propagate(conv, h)).relu()
        return self.head(bag.pool(bag.pool(h), "mean"))


class Molecules(nn.Module):
    """GINE on categorical atoms and bonds."""

    def __init__(self, marks: int = 1) -> None:
        super().__init__()
        self.atoms = nn.ModuleList(nn.Embedding(c, WIDTH) for c in (3, 2))
        self.bonds = nn.ModuleList(nn.Embedding(c, WIDTH) for c in (3, 2))
        self.mark = nn.Linear(marks, WIDTH)
        self.convs = nn.ModuleList(GINEConv(MLP([WIDTH, WIDTH, WIDTH])) for _ in range(3))
        self.norms = nn.ModuleList(nn.BatchNorm1d(WIDTH) for _ in range(3))
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, bag) -> Tensor:
        h = sum((e(bag.x[:, i]) for i, e in enumerate(self.atoms)), self.mark(bag.mark))
        edge = self.bonds[0](bag.edge_attr[:, 0]) + self.bonds[1](bag.edge_attr[:, 1])
        for conv, norm in zip(self.convs, self.norms):
            h = norm(bag.propagate(conv, h, edge)).relu() + h
        return self.head(bag.pool(bag.pool(h), "mean"))


MODELS = [Net, Attention, Context, Knowledge, Nodes, Attending, Molecules]
ROOTED = [Rooted, Between, Union]  # for policies in which every node is the root of one subgraph
