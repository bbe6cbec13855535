"""Models whose plans are prepared and padded in the tests, the graphs for them, and what is compared."""

from __future__ import annotations

import copy
from typing import Any

import torch
from bag_models import MODELS, ROOTED, WIDTH, Molecules, Small
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv

from enfa.nn.bag import Bag
from enfa.nn.convs import CONVS
from enfa.nn.rowwise.rows import Rows
from enfa.plan.steps.step import Step
from enfa.testing import degenerate_graphs, random_graphs

_NEEDS = {"own": ("self", "self_row"), "edges": ("edge", "in_edge")}  # by what a conv says that it reads


def propagate(bag: Any, conv: Any, h: Any, edge: Any = None) -> Any:
    """One of the package's own convs."""
    number = bag._step(Step("propagate", h.kind, (h.number,), conv.reads_edges))
    for name in conv.links:
        bag.need(number, *_NEEDS.get(name, (name,)))
    degree = None
    if conv.reads_degrees:
        degree = tuple(bag.moved(bag.degree, n)[:, 0] for n in (h.number, number))
    found = Rows(conv.hidden(h.value, bag.tables[number].links, None if edge is None else edge.value, degree), bag, number)
    return found if conv.update is None else conv.update(found)


class Own(nn.Module):
    """A chain of one of the package's own convs: DS."""

    def __init__(self, conv: str, marks: int = 1) -> None:
        super().__init__()
        self.atoms, self.mark = nn.Embedding(5, WIDTH), nn.Linear(marks, WIDTH)
        self.convs = nn.ModuleList(CONVS[conv](WIDTH, WIDTH, 2, "batch") for _ in range(3))
        self.norms = nn.ModuleList(nn.BatchNorm1d(WIDTH) for _ in range(3))
        self.bonds = nn.Embedding(8, 2)
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, bag: Any) -> Tensor:
        h: Any = self.atoms(bag.x[:, 0]) + self.mark(bag.mark)
        for conv, norm in zip(self.convs, self.norms):
            edge = self.bonds(bag.edge_attr[:, 0]) if conv.reads_edges else None
            h = norm(propagate(bag, conv, h, edge)).relu()
        return self.head(bag.pool(bag.pool(h), "mean"))


class Looped(Small):
    """Convs that add self-loops, and weigh messages by degrees."""

    def __init__(self, marks: int = 1) -> None:
        super().__init__(marks)
        self.gat, self.gcn = GATConv(WIDTH, WIDTH), GCNConv(WIDTH, WIDTH)
        self.sage = SAGEConv(WIDTH, WIDTH, aggr="max")
        self.drop = nn.Dropout(0.3)

    def forward(self, bag: Any) -> Tensor:
        h = self.start(bag)
        for conv in (self.gat, self.gcn, self.sage):
            h = self.drop(self.other(bag.propagate(conv, h)).relu())
        return self.head(bag.pool(bag.pool(h, "mean"), "softmax", score=self.score(bag.pool(h))))


class Plain(nn.Module):
    """Counts nothing: no norm."""

    def __init__(self, marks: int = 1) -> None:
        super().__init__()
        self.embed, self.conv, self.head = nn.Linear(3 + marks, WIDTH), GINConv(nn.Linear(WIDTH, WIDTH)), nn.Linear(WIDTH, 2)
        self.gat = GATConv(WIDTH, WIDTH, add_self_loops=False)

    def forward(self, bag: Any) -> Tensor:
        h: Any = self.embed(torch.cat([bag.x, bag.mark], 1))
        h = bag.propagate(self.gat, bag.propagate(self.conv, h).relu()).relu()
        return self.head(bag.pool(bag.pool(h), "max"))


OWN = {name: (lambda name=name: Own(name)) for name in ("gin", "gine", "gcn", "graphconv")}
EVERY_MODEL: dict[str, Any] = {kind.__name__: kind for kind in (*MODELS, *ROOTED, Looped, Plain)} | OWN


def graphs_for(name: str, seed: int = 1, count: int = 4, size: int = 8) -> list[Data]:
    """Degenerate ones too. More kinds of edges than lists are made for."""
    channels: Any = [3, 2] if EVERY_MODEL[name] is Molecules else [5, 3] if name in OWN else 3
    edges = [3, 2] if EVERY_MODEL[name] is Molecules else [8, 3] if name in OWN else None
    more = {} if name == "Looped" else {"loops": True, "parallel": True}
    graphs = random_graphs(count, size, seed=seed, channels=channels, edge_channels=edges, **more)
    others = degenerate_graphs(channels, edges, seed)
    return graphs + [graph for kind, graph in others.items() if name != "Looped" or "loop" not in kind]


def model_for(name: str) -> nn.Module:
    torch.manual_seed(0)
    return EVERY_MODEL[name]().double()


def results(model: nn.Module, bag: Bag, train: bool = True, rows: int | None = None) -> dict[str, Tensor]:
    """Outputs, gradients and buffers. ``rows``: of the outputs, those to look at."""
    model = copy.deepcopy(model).train(train)
    torch.manual_seed(0)  # for dropout
    out = model(bag)[:rows]
    (out.square() + out * torch.linspace(-1, 1, out.numel(), dtype=out.dtype).reshape(out.shape)).sum().backward()
    found = {"output": out.detach()}
    found |= {f"gradient {name}": p.grad for name, p in model.named_parameters() if p.grad is not None}
    return found | {f"buffer {name}": b for name, b in model.named_buffers()}


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    scale = max(float(v.abs().max()) for k, v in expected.items() if k.startswith("gradient") and v.numel())
    for name, value in expected.items():
        size = scale if name.startswith("gradient") else 1.0
        torch.testing.assert_close(found[name], value, rtol=1e-12, atol=1e-12 * size, msg=lambda m, n=name: f"{n}: {m}")
