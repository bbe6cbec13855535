"""A model of one's own: any torch.nn.Module that asks a bag for its rows."""

import torch
from torch import nn
from torch_geometric.nn import MLP, GINConv

import enfa
from enfa.testing import random_graphs


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(3 + 1, 32)
        self.convs = nn.ModuleList(GINConv(MLP([32, 32, 32])) for _ in range(4))  # PyG's own
        self.norms = nn.ModuleList(nn.BatchNorm1d(32) for _ in range(4))
        self.head = nn.Linear(32, 2)

    def forward(self, bag):
        h = self.embed(torch.cat([bag.x, bag.mark], 1))
        for conv, norm in zip(self.convs, self.norms):
            h = norm(bag.propagate(conv, h)).relu()
        return self.head(bag.pool(bag.pool(h, "sum"), "mean"))


graphs = random_graphs(32, 12, seed=0, channels=3)
model = Net().double()
bag = enfa.make_plan(graphs, enfa.NodeMarking(), model)  # runs the model once, and notes what it asks for
print(bag.program)

full = enfa.make_plan(graphs, enfa.NodeMarking(), model, kind="full")
torch.testing.assert_close(model(bag), model(full), rtol=1e-10, atol=1e-10)
print("The same outputs from", sum(bag.cost().rows), "rows instead of", sum(full.cost().rows))
