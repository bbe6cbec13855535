"""Lifted models that embed kinds of atoms and bonds, as scripts for molecules do: marks are an argument of their own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from lifted import difference, results, written_out
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GINEConv, global_add_pool, global_mean_pool

import enfa
from enfa.testing import assert_same_as_full, random_graphs

WIDTH = 5


class Encoder(nn.Module):
    """As OGB's AtomEncoder and BondEncoder are written."""

    def __init__(self, kinds: list[int]) -> None:
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(kind, WIDTH) for kind in kinds)

    def forward(self, x: Tensor) -> Tensor:
        embedded: Any = 0
        for i in range(x.shape[1]):
            embedded += self.embeddings[i](x[:, i])
        return embedded


class Molecules(nn.Module):
    def __init__(self, marks: int) -> None:
        super().__init__()
        self.atoms, self.bonds, self.marks = Encoder([4, 3]), Encoder([3]), nn.Linear(marks, WIDTH)
        self.conv1, self.conv2 = GINEConv(nn.Linear(WIDTH, WIDTH)), GINEConv(nn.Linear(WIDTH, WIDTH))
        self.norm, self.head = nn.BatchNorm1d(WIDTH), nn.Linear(WIDTH, 2)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, batch: Tensor, mark: Tensor) -> Tensor:
        h, edge = self.atoms(x) + self.marks(mark), self.bonds(edge_attr)
        h = self.norm(self.conv1(h, edge_index, edge)).relu()
        return self.head(global_add_pool(self.conv2(h, edge_index, edge), batch))


class OfData(Molecules):
    def forward(self, data: Any) -> Tensor:  # type: ignore[override]
        return super().forward(data.x, data.edge_index, data.edge_attr, data.batch, data.mark)


class Beside(Molecules):
    """Floats, and categories beside them."""

    def forward(  # type: ignore[override]
        self, x: Tensor, x_cat: Tensor, edge_index: Tensor, edge_attr: Tensor, batch: Tensor, mark: Tensor
    ) -> Tensor:
        return super().forward(x_cat, edge_index, edge_attr, batch, mark + x)


def _graphs() -> list[Data]:
    draw = torch.Generator().manual_seed(1)
    graphs = random_graphs(5, 6, seed=2)
    for graph in graphs:
        graph.x = torch.stack([torch.randint(0, kinds, (graph.num_nodes,), generator=draw) for kinds in (4, 3)], 1)
        graph.edge_attr = torch.randint(0, 3, (graph.num_edges, 1), generator=draw)
    return graphs


@pytest.mark.parametrize("policy", [enfa.NodeMarking(), enfa.EgoNets(2, mark=True), enfa.NodeDeletion()], ids=repr)
@pytest.mark.parametrize("cls", [Molecules, OfData], ids=lambda cls: cls.__name__)
def test_as_the_model_on_every_subgraph(cls: type[Molecules], policy: Any) -> None:
    torch.manual_seed(0)
    model = cls(policy.mark_channels).double()
    given, graph = written_out(_graphs(), policy)
    given["x"], given["mark"] = given["x"][:, :2].long(), given["x"][:, 2:]
    given["edge_attr"] = given["edge_attr"].long()
    one = cls(policy.mark_channels).double()
    one.load_state_dict(model.state_dict())
    out = one(Data(**given)) if cls is OfData else one(**given)
    expected = results(one, global_mean_pool(out, graph, len(_graphs())))
    for kind in ("full", "distinct"):
        other = cls(policy.mark_channels).double()
        other.load_state_dict(model.state_dict())
        lifted = enfa.lift(other, marks="argument")
        assert difference(expected, results(other, lifted(enfa.make_plan(_graphs(), policy, lifted, kind)))) < 1e-10


@pytest.mark.parametrize("cls", [Molecules, OfData], ids=lambda cls: cls.__name__)
def test_same_on_every_plan(cls: type[Molecules]) -> None:
    assert_same_as_full(enfa.lift(cls(1), marks="argument"), enfa.NodeMarking(), _graphs())


def test_categories_beside_floats() -> None:
    graphs = _graphs()
    for graph in graphs:
        graph.x_cat, graph.x = graph.x, graph.x[:, :1].sin()
    model = enfa.lift(Beside(1), marks="argument")
    assert_same_as_full(model, enfa.NodeMarking(), graphs)
    model(enfa.make_plan(graphs, enfa.NodeMarking(), model)).sum().backward()
    assert all(part.weight.grad is not None for part in model.model.atoms.embeddings)


def test_the_mark_is_read() -> None:
    torch.manual_seed(0)
    model = enfa.lift(Molecules(1), marks="argument").eval()
    plan = enfa.make_plan(_graphs(), enfa.NodeMarking(), model)
    before = model(plan)
    model.model.marks.weight.data.zero_()
    assert not torch.allclose(before, model(plan))


class Without(Molecules):
    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, batch: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x, edge_index, edge_attr, batch, 0.0 * x[:, :1])


class Squeezes(Molecules):
    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, batch: Tensor, mark: Tensor) -> Tensor:
        return super().forward(x.squeeze(), edge_index, edge_attr, batch, mark)


class OneKind(Molecules):
    """As scripts have it whose ``edge_attr`` is of shape [edges]."""

    def __init__(self, marks: int) -> None:
        super().__init__(marks)
        self.bonds = nn.Embedding(3, WIDTH)  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("cls", "marks", "sentence"),
    [
        (Without, "concat", r"got categories: give marks='argument', .*\(mark\), where self.marks = nn.Linear\(1, channels\)"),
        (Without, "argument", "Expected Without to take an argument 'mark' for marks='argument', got forward.x, edge_index"),
        (Molecules, None, r"Molecules needs 'mark', but .* \(marks='argument' gives marks\)"),
        (OneKind, "argument", r"GINEConv to end in a row .*, got Tensor: .*: embed edge_attr.squeeze\(-1\)$"),
        (Squeezes, "argument", r"squeeze along all axes .* name the axis, as x.squeeze\(-1\) does"),
    ],
)  # fmt: skip
def test_what_a_sentence_says(cls: Any, marks: Any, sentence: str) -> None:
    with pytest.raises((TypeError, ValueError), match=sentence):
        enfa.make_plan(_graphs(), enfa.NodeMarking(), enfa.lift(cls(1), marks=marks))
