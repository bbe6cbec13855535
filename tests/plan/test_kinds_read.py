"""Edge kinds that no message is of: what a model computes of kinds sees none of them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import MLP, GINEConv

import enfa


class Roots(nn.Module):
    """Defined, and with a gradient, where attributes are above zero."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1, 4))

    def forward(self, attr: enfa.nn.rowwise.rows.Rows) -> enfa.nn.rowwise.rows.Rows:
        return (attr * self.scale).sqrt()


class Net(nn.Module):
    def __init__(self, edges: nn.Module) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.edges, self.embed, self.head = edges, nn.Linear(4, 4), nn.Linear(4, 1)
        self.convs = nn.ModuleList(GINEConv(MLP([4, 4, 4], norm=None)) for _ in range(2))
        self.double()

    def forward(self, bag: enfa.Bag) -> Tensor:
        h, attr = self.embed(torch.cat([bag.x, bag.mark], 1)), bag.edge_attr
        attr = self.edges(attr if attr.is_floating_point() else attr[:, 0])
        for conv in self.convs:
            h = bag.propagate(conv, h, attr)
        return self.head(bag.pool(bag.pool(h), "mean"))


def _graph(attr: list[float] | list[int]) -> Data:
    """A path with so many edges, each in both directions."""
    torch.manual_seed(len(attr))
    there = torch.arange(len(attr))
    ends = torch.stack([there, there + 1])
    both = torch.tensor(attr)[:, None].repeat(2, 1)
    return Data(x=torch.rand(len(attr) + 1, 3), edge_index=torch.cat([ends, ends.flip(0)], 1), edge_attr=both)


def _after_a_step(model: Net, plan: enfa.Bag) -> dict[str, Tensor]:
    model.zero_grad()
    out = model(plan)
    out.square().sum().backward()
    found = {"output": out.detach()} | {name: p.detach().clone() for name, p in model.named_parameters()}
    return found | {f"gradient of {name}": p.grad.to_dense() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("kind", ["full", "ego", "distinct"])
def test_gradients_where_other_graphs_have_attributes_that_have_none(kind: str) -> None:
    graphs = [_graph([1.0, 4.0, 2.0]), _graph([0.0, 3.0])]
    compiled = enfa.compile(graphs, enfa.NodeMarking(), Net(Roots()), progress=False, kind=kind)
    expected = _after_a_step(Net(Roots()), enfa.make_plan(graphs[:1], enfa.NodeMarking(), Net(Roots()), "full"))
    assert all(value.isfinite().all() for value in expected.values())
    for name, value in _after_a_step(Net(Roots()), compiled[[0]]).items():
        torch.testing.assert_close(value, expected[name], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", ["full", "ego", "distinct"])
def test_embeddings_of_kinds_elsewhere_stay_as_long_as_they_are(kind: str) -> None:
    graphs = [_graph([0, 1, 1]), _graph([2, 3])]
    edges = nn.Embedding(4, 4, max_norm=0.1)
    compiled, before = enfa.compile(graphs, enfa.NodeMarking(), Net(edges), progress=False, kind=kind), edges.weight.clone()
    Net(edges)(compiled[[0]])
    assert torch.equal(edges.weight[2:], before[2:])
    assert (edges.weight[:2].norm(dim=1) <= 0.1 + 1e-6).all()


@pytest.mark.parametrize("kind", ["full", "ego", "distinct"])
def test_sparse_gradients_name_the_kinds_of_the_batch_alone(kind: str) -> None:
    graphs = [_graph([2, 1, 1]), _graph([0, 3])]
    model = Net(nn.Embedding(4, 4, sparse=True))
    model(enfa.compile(graphs, enfa.NodeMarking(), model, progress=False, kind=kind)[[0]]).sum().backward()
    assert model.edges.weight.grad.coalesce().indices().tolist() == [[1, 2]]


@pytest.mark.parametrize("kind", ["full", "ego", "distinct"])
def test_an_edge_that_every_subgraph_lacks(kind: str) -> None:
    """Deleted with the one edge of its graph; its attribute has no root."""
    graphs, policy = [_graph([1.0, 4.0, 2.0]), _graph([0.0])], enfa.EdgeDeletion()
    model = Net(Roots())
    found = _after_a_step(model, enfa.make_plan(graphs, policy, model, kind))
    assert all(value.isfinite().all() for value in found.values())


def test_kinds_that_messages_are_of_stay_as_they_are() -> None:
    graphs = [_graph([1.0, 4.0, 2.0]), _graph([0.0, 3.0])]
    for kind in ("full", "distinct"):
        plan = enfa.compile(graphs, enfa.NodeMarking(), Net(Roots()), progress=False, kind=kind)[[0]]
        assert plan.edge_rows is not None and plan.edge_rows.unique().tolist() == [1.0, 2.0, 4.0]
        links = plan.tables[1].links
        assert links is not None
        assert plan.edge_rows[links.in_edge.long()].unique().tolist() == [1.0, 2.0, 4.0]
