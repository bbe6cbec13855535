"""PyG's convs on Rows: exact, or refused with a sentence; and what their edge lists and messages may do."""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

import enfa
from enfa.nn.bag import make_plan
from enfa.testing import random_graphs

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "benchmarks"))
from conv_parts.cases import CASES, OUT_OF_SCOPE, Case  # noqa: E402
from conv_parts.check import verdict  # noqa: E402
from convs import PAGE, row  # noqa: E402

sys.path.remove(str(ROOT / "benchmarks"))


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.name} {c.note}".strip())
def test_a_conv_is_what_the_page_says(case: Case) -> None:
    """After a change: python benchmarks/convs.py"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fine, why = verdict(case, [enfa.NodeDeletion()])
    assert row(case, fine, why) in PAGE.read_text().splitlines()


def test_the_page_has_every_conv() -> None:
    every = set(pyg.conv.__all__)  # earlier versions have fewer
    assert {case.name for case in CASES} | OUT_OF_SCOPE.keys() >= every
    listed = [line.split("|")[1].split(",")[0].strip() for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    assert set(listed) - {"conv"} == {case.name for case in CASES} | OUT_OF_SCOPE.keys()
    exact = {line.split("|")[1].split(",")[0].strip() for line in PAGE.read_text().splitlines() if "| exact |" in line}
    assert f"{len(exact)} convs are exact" in PAGE.read_text() and len(exact) >= 30


class Net(nn.Module):
    """One conv between two linear maps."""

    def __init__(self, conv: nn.Module, nodes: bool = False, **more: Any) -> None:
        super().__init__()
        self.conv, self.embed, self.head, self.nodes, self.more = conv, nn.Linear(4, 4), nn.Linear(4, 2), nodes, more

    def forward(self, bag: Any) -> Tensor:
        h = self.embed(torch.cat([bag.x, bag.mark], 1))
        h = bag.across(h, "sum") if self.nodes else h
        h = bag.propagate(self.conv, h.tanh(), **self.more)
        return self.head(bag.pool(h, "sum") if self.nodes else bag.pool(bag.pool(h, "sum"), "mean"))


def _both(net: nn.Module, policy: Any = None) -> tuple[Tensor, Tensor]:
    graphs, policy = random_graphs(5, 6, seed=3, channels=3), policy or enfa.NodeMarking()
    net.double()
    found = []
    for kind in ("full", "distinct"):
        model = copy.deepcopy(net)
        found.append(torch.cat([model(make_plan(graphs, policy, model, kind)).reshape(-1)]))
    return found[0], found[1]


@pytest.mark.parametrize(("nodes", "along"), [(False, "nodes"), (True, "nodes"), (False, "subgraphs")])
def test_degrees_are_those_of_the_edges_that_messages_take(nodes: bool, along: str) -> None:
    torch.manual_seed(0)
    conv = pyg.GCNConv(4, 4)
    net = Net(conv, nodes, along=along)
    full, distinct = _both(net)
    torch.testing.assert_close(full, distinct)
    model = net.eval()
    bag = make_plan(random_graphs(5, 6, seed=3, channels=3), enfa.NodeMarking(), model, "full")
    links = [table.links for table in bag.tables if table.links is not None][-1]
    target = torch.repeat_interleave(torch.arange(links.num_rows), links.in_ptr.diff())
    h = model.embed(torch.cat([bag.x, bag.mark], 1))
    h = (bag.across(h, "sum") if nodes else h).tanh()
    got = bag.propagate(conv, h, along=along).value
    torch.testing.assert_close(got, conv(h.value, torch.stack([links.in_row.long(), target])))


def test_degrees_are_rows_of_pairs() -> None:
    class Degrees(nn.Module):
        def forward(self, bag: Any) -> Tensor:
            return bag.pool(bag.pool(bag.degree.double().square(), "sum"), "sum")

    graphs = random_graphs(5, 6, seed=3, channels=3)
    sums = [Degrees()(make_plan(graphs, enfa.NodeDeletion(), Degrees(), kind)) for kind in ("full", "distinct")]
    torch.testing.assert_close(*sums)
    expected = []
    for graph in graphs:
        total = 0
        for v in range(graph.num_nodes):
            kept = graph.edge_index[:, (graph.edge_index != v).all(0)]
            total += int(torch.bincount(kept[1], minlength=1).square().sum())
        expected.append(float(total))
    assert sums[0][:, 0].tolist() == expected
    with pytest.raises(ValueError, match="asks for a step that its plan does not hold: pairs, start with degrees"):
        make_plan(graphs, enfa.NodeDeletion(), Net(pyg.GINConv(nn.Linear(4, 4)))).degree  # noqa: B018


class _Own(pyg.MessagePassing):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(edge_index, x=x)


class Updates(_Own):
    """update() reads the receiving rows."""

    def message(self, x_j: Tensor) -> Tensor:
        return x_j.tanh()

    def update(self, inputs: Tensor, scale: Tensor) -> Tensor:
        return inputs * scale

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(edge_index, x=x, scale=x.sigmoid())


class Numbers(_Own):
    def message(self, x_j: Tensor, edge_index_j: Tensor) -> Tensor:
        return x_j * edge_index_j[:, None]


class AllAtOnce(_Own):
    def message(self, x_j: Tensor, x: Tensor) -> Tensor:
        return x_j + x.mean(0)


class Reverses(_Own):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(edge_index.flip(0), x=x)


class OtherEdges(_Own):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(torch.zeros(2, 1, dtype=torch.long), x=x)


class OutDegrees(_Own):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(edge_index, x=x) / pyg.conv.gcn_conv.scatter(x, edge_index[0], 0)


class Averages(_Own):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(edge_index, x=x) / edge_index.shape[1]


def test_update_reads_the_receiving_rows() -> None:
    torch.testing.assert_close(*_both(Net(Updates())))


@pytest.mark.parametrize(
    ("conv", "sentence"),
    [
        (Numbers(), "Numbers reads edge_index_j in its messages"),
        (AllAtOnce(), "AllAtOnce reads x in its messages, all rows at once"),
        (Reverses(), r"reads the edge list by itself \(flip\)"),
        (OtherEdges(), "Expected OtherEdges to pass messages along the edges it was given"),
        (OutDegrees(), "Expected scatter to pool the nodes"),
        (Averages(), r"reads the edge list by itself \(shape\)"),
        (pyg.GCNConv(4, 4, cached=True), "Expected GCNConv with cached=False"),
        (pyg.GINConv(nn.Linear(4, 4), flow="target_to_source"), "flow='source_to_target'"),
        (pyg.SAGEConv(4, 4, aggr="lstm"), "Expected aggregations"),
        (nn.Linear(4, 4), "Expected a PyG conv"),
        (pyg.RGCNConv(4, 4, 2), r"^RGCNConv needs 'edge_type': bag.propagate\(conv, h, edge_type=...\)"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)  # fmt: skip
def test_what_depends_on_the_plan_is_refused(conv: nn.Module, sentence: str) -> None:
    with pytest.raises((TypeError, ValueError), match=sentence):
        _both(Net(conv))


def test_arguments_that_a_conv_lacks_or_has_not() -> None:
    with pytest.raises(TypeError, match="GINConv takes no 'edge_weight'"):
        _both(Net(pyg.GINConv(nn.Linear(4, 4)), edge_weight=None))
    with pytest.raises(TypeError, match="FAConv needs 'x_0'"):
        _both(Net(pyg.FAConv(4)))
    with pytest.raises(TypeError, match="GINEConv reads 'edge_attr', and got none"):
        _both(Net(pyg.GINEConv(nn.Linear(4, 4))))
    with pytest.raises(TypeError, match="Expected GATConv to return Rows of pairs, got tuple"):
        _both(Net(pyg.GATConv(4, 4), return_attention_weights=True))


class Mixing(pyg.MessagePassing):
    """A conv whose messages, or rows, read what is not theirs."""

    def __init__(self, where: str, act: Callable[[Tensor], Tensor]) -> None:
        super().__init__(aggr="add")
        self.where, self.act = where, act

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(edge_index, x=x)

    def message(self, x_j: Tensor) -> Tensor:
        return self.act(x_j) if self.where == "message" else x_j

    def update(self, inputs: Tensor) -> Tensor:
        return self.act(inputs) if self.where == "update" else inputs


@pytest.mark.parametrize("where", ["message", "update"])
@pytest.mark.parametrize(
    "act",
    [
        lambda x: x - x.view(-1).mean(), lambda x: x - x.t().mean(1), lambda x: x - x.median(0).values, lambda x: x @ x.T @ x,
        lambda x: F.layer_norm(x, x.shape), lambda x: x + x.flip(0), lambda x: x - x[0], lambda x: x / len(x),
    ],
)  # fmt: skip
def test_messages_that_read_others_are_refused(act: Callable[[Tensor], Tensor], where: str) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin, self.conv = nn.Linear(4, 5), Mixing(where, act)

        def forward(self, bag: enfa.Bag) -> Tensor:
            h = self.lin(torch.cat([bag.x, bag.mark], 1))
            return bag.pool(bag.pool(bag.propagate(self.conv, h)))

    with pytest.raises(TypeError, match="Mixing gives a row something else when fewer rows get messages"):
        enfa.make_plan(random_graphs(3, 7, seed=1), enfa.NodeMarking(), Model())


@pytest.mark.parametrize("right", [True, False])
def test_rows_without_messages_are_not_tried_alone(right: bool) -> None:
    """Some code that is right fails on no messages at all; what fails on few is refused."""
    graphs = [Data(x=torch.randn(6, 3), edge_index=to_undirected(torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])))]

    def act(x: Tensor) -> Tensor:
        return x.view(len(x), -1) if right else x + 0 * x[7]

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin, self.conv = nn.Linear(4, 5), Mixing("message", act)

        def forward(self, bag: enfa.Bag) -> Tensor:
            h = self.lin(torch.cat([bag.x, bag.mark], 1))
            return bag.pool(bag.pool(bag.propagate(self.conv, h)))

    if right:
        enfa.make_plan(graphs, enfa.NodeMarking(), Model())
    else:
        with pytest.raises(TypeError, match="Mixing fails when fewer rows get messages: index 7"):
            enfa.make_plan(graphs, enfa.NodeMarking(), Model())
