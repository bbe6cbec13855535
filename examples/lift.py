"""A GNN of PyG's, untouched, as a subgraph GNN: trained on distinct rows, and checked against PyG's way of doing it."""

import torch
import torch.nn.functional as F
from torch_geometric.nn import GCNConv, global_mean_pool

import enfa
from enfa.testing import random_graphs


class GCN(torch.nn.Module):
    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.conv1, self.conv2, self.lin = GCNConv(in_channels, 32), GCNConv(32, 32), torch.nn.Linear(32, 2)

    def forward(self, x, edge_index, batch):
        x = self.conv1(x, edge_index).relu()
        x = self.conv2(x, edge_index)
        return self.lin(global_mean_pool(x, batch))


graphs = random_graphs(32, 12, seed=0, channels=3)
labels = torch.tensor([graph.num_edges % 4 // 2 for graph in graphs])
policy = enfa.NodeMarking()
model = enfa.lift(GCN(3 + policy.mark_channels))  # marks are further features
bag = enfa.make_plan(graphs, policy, model)

optimiser = torch.optim.Adam(model.parameters(), 0.01)
for _ in range(20):
    optimiser.zero_grad()
    F.cross_entropy(model(bag), labels).backward()
    optimiser.step()

full = enfa.make_plan(graphs, policy, model, kind="full")
print("rows of every layer:", full.cost().rows, "->", bag.cost().rows)
torch.testing.assert_close(model(bag), model(full), rtol=1e-4, atol=1e-5)
print("The same outputs as on every subgraph, written out.")
