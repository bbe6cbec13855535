"""What an embedding does to its weights depends on which rows there are: none is left out then."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GINConv

import enfa
from enfa.edits import GraphView


class One(enfa.Policy):
    """One subgraph, about its first node."""

    marks = ((0.0,), (1.0,))

    def bag(self, graph: GraphView) -> list[enfa.Subgraph]:
        return [enfa.Subgraph().mark_node(0).rooted_at(0)]


class Rooted(nn.Module):
    """Reads the root's row alone: of a path one layer reads two nodes."""

    def __init__(self, **options: object) -> None:
        super().__init__()
        self.embed, self.conv = nn.Embedding(9, 4, **options), GINConv(nn.Linear(4, 4))

    def forward(self, bag: enfa.Bag) -> torch.Tensor:
        return bag.pool(bag.root(bag.propagate(self.conv, self.embed(bag.x[:, 0])).tanh()), "mean")


def _path() -> Data:
    edges = torch.tensor([[i, i + 1] for i in range(8)]).T
    return Data(x=torch.arange(9)[:, None], edge_index=torch.cat([edges, edges.flip(0)], 1))


@pytest.mark.parametrize("kind", ["full", "ego", "distinct"])
def test_max_norm_shortens_what_the_conventional_model_looks_up(kind: str) -> None:
    model = Rooted(max_norm=0.1)
    model(enfa.make_plan([_path()], One(), model, kind))
    torch.testing.assert_close(model.embed.weight.norm(dim=1), torch.full((9,), 0.1))


@pytest.mark.parametrize("kind", ["full", "ego", "distinct"])
def test_sparse_gradients_name_what_the_conventional_model_looks_up(kind: str) -> None:
    model = Rooted(sparse=True)
    model(enfa.make_plan([_path()], One(), model, kind)).sum().backward()
    assert model.embed.weight.grad.coalesce().indices().flatten().tolist() == list(range(9))
