"""Programs of every sort, with policies and graphs, for the tests of compiled datasets and their files."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from bag_models import Between, Context, Egos, Knowledge, Nodes, Rooted, Union
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import MLP, GINConv, GINEConv

import enfa
from enfa.batch.compile import compile_program
from enfa.batch.dataset import CompiledDataset
from enfa.nn.bag import make_plan, trace
from enfa.plan.step import Program
from enfa.testing import degenerate_graphs, random_graphs

__all__ = ["CASES", "Case", "Chain", "Roots", "assert_exact", "graphs_of", "outputs"]

WIDTH = 4


class Chain(nn.Module):
    """DS: messages, one layer after the other, then pools. ``edges``: channels of attributes and marks of edges."""

    def __init__(
        self, layers: int = 2, marks: int = 1, edges: int = 0, categories: bool = False, degrees: bool = False,
        norm: bool = True, attr: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.categories, self.degrees, self.attr = categories, degrees, attr
        self.embed = nn.ModuleList(nn.Embedding(c, WIDTH) for c in (5, 3)) if categories else nn.Linear(3, WIDTH)
        self.mark, self.edge = nn.Linear(marks, WIDTH), nn.Linear(edges, WIDTH) if edges else None
        inner = [MLP([WIDTH, WIDTH, WIDTH], norm="batch_norm" if norm else None) for _ in range(layers)]
        self.convs = nn.ModuleList((GINEConv if edges else GINConv)(mlp) for mlp in inner)
        self.head = nn.Linear(WIDTH, 2)

    def last(self, bag: enfa.Bag) -> Any:
        """What all layers make of the pairs."""
        h: Any = self.mark(bag.mark)
        h = sum((e(bag.x[:, i]) for i, e in enumerate(self.embed)), h) if self.categories else h + self.embed(bag.x)
        if self.degrees:
            h = h + bag.degree.to(h.dtype)
        more: tuple[Any, ...] = ()
        if self.edge is not None:
            given = torch.cat([bag.edge_attr.to(self.edge.weight.dtype), bag.edge_mark], 1)
            more = (self.edge(given),)
        for conv in self.convs:
            h = bag.propagate(conv, h, *more).relu()
        return h

    def forward(self, bag: enfa.Bag) -> Tensor:
        out = self.head(bag.pool(bag.pool(self.last(bag), "sum"), "mean"))
        return out + bag.graph_attr["weight"][:, None] if self.attr else out


class Roots(Chain):
    """Reads roots alone: pairs that are far from the root of their subgraph have no rows, unless these are counted."""

    def forward(self, bag: enfa.Bag) -> Tensor:
        return self.head(bag.pool(bag.root(self.last(bag)), "mean"))


@dataclass
class Case:
    """``counted``: whether its program says that rows are counted. ``kind`` and ``ahead`` are those of ``enfa.compile``."""

    policy: enfa.Policy
    model: Callable[[], nn.Module]
    kind: str = "distinct"
    ahead: bool = True
    counted: bool = True
    channels: dict[str, Any] = field(default_factory=lambda: {"channels": 3, "edge_channels": 2})

    def made(self) -> nn.Module:
        torch.manual_seed(0)
        return self.model().double()

    def program(self, graphs: Sequence[Data]) -> Program:
        return replace(trace(self.made(), graphs, self.policy), counted=self.counted)

    def compiled(self, graphs: Sequence[Data], **options: Any) -> CompiledDataset:
        options = {"progress": False, "kind": self.kind, "ahead": self.ahead, **options}
        if self.counted:
            return enfa.compile(graphs, self.policy, self.made(), **options)
        return compile_program(graphs, self.policy, self.program(graphs), enfa.Bag, dtype=np.float64, **options)

    @property
    def anew(self) -> bool:
        """Whether every batch is planned anew."""
        return self.kind != "distinct" or not self.ahead


_CATEGORIES = {"channels": [3, 2], "edge_channels": [3, 2]}

CASES: dict[str, Case] = {
    "ds": Case(enfa.NodeMarking(), lambda: Chain(3)),
    "ds, kept nodes": Case(enfa.EgoNets(1), lambda: Chain(2, 1)),
    "ds, edges": Case(enfa.EdgeDeletion(), lambda: Chain(2, edges=2, categories=True), channels=_CATEGORIES),
    "ds, edge marks": Case(enfa.EdgeMarking("degrees", bins=4), lambda: Chain(2, edges=2 + 5)),
    "ds, degrees": Case(enfa.NodeDeletion(), lambda: Chain(2, degrees=True, attr=True)),
    "ds, shared within graphs": Case(enfa.NodeMarking(), Knowledge),
    "ds, not counted": Case(enfa.NodeMarking(), lambda: Chain(2, norm=False), counted=False),
    "roots, not counted": Case(enfa.EdgeMarking(), lambda: Roots(edges=3, norm=False), counted=False),
    "dss": Case(enfa.NodeDeletion(), Context),
    "rooted": Case(enfa.NodeMarking(), Rooted),
    "between": Case(enfa.NodeMarking(), Between),
    "sun": Case(enfa.NodeMarking(), Union),
    "about nodes": Case(enfa.EdgeDeletion(), Egos),
    "nodes": Case(enfa.EgoNets(1), Nodes),
    "full": Case(enfa.EdgeDeletion(), lambda: Chain(2, edges=2, categories=True), "full", channels=_CATEGORIES),
    "full, kept nodes": Case(enfa.EgoNets(1), lambda: Chain(2, 1), "full"),
    "anew": Case(enfa.NodeMarking(), Context, ahead=False),
}


def graphs_of(case: Case, count: int = 7, seed: int = 1, degenerate: bool = True, **more: Any) -> list[Data]:
    """Random and degenerate ones, with labels and attributes that count up."""
    channels = {**case.channels, **more}
    graphs = random_graphs(count, 7, seed=seed, **channels)
    graphs += list(degenerate_graphs(channels["channels"], channels["edge_channels"]).values()) if degenerate else []
    for i, graph in enumerate(graphs):
        graph.y, graph.weight, graph.several = torch.tensor([i]), float(i), torch.full((1, 2, 3), i)
    return graphs


def outputs(model: nn.Module, bag: enfa.Bag) -> list[Tensor]:
    """In training and in evaluation; the model stays as it is, and dropout draws the same every time."""
    found = []
    for train in (True, False):
        torch.manual_seed(1)
        with torch.no_grad():
            found.append(copy.deepcopy(model).train(train)(bag))
    return found


def assert_exact(case: Case, plan: enfa.Bag, graphs: Sequence[Data]) -> None:
    """A plan gives what the full plan of the same graphs gives."""
    model = case.made()
    full = make_plan(graphs, case.policy, model, "full")
    full.graph_ids = plan.graph_ids  # dropout's masks depend on the place of a graph in its dataset
    assert plan.num_graphs == len(graphs)
    torch.testing.assert_close(outputs(model, plan), outputs(model, full), rtol=1e-10, atol=1e-10)
