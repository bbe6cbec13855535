"""Models whose plans are prepared and padded in the tests, the graphs for them, and what is compared."""

from __future__ import annotations

import copy
from typing import Any

import torch
from bag_models import MODELS, ROOTED, WIDTH, Egos, Molecules, Small
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv

import enfa
from enfa.nn.bag import Bag
from enfa.testing import degenerate_graphs, random_graphs


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


class Told(Small):
    """Pairs read attributes of their graph, and what was pooled of it."""

    def __init__(self, marks: int = 1) -> None:
        super().__init__(marks)
        self.told = nn.Linear(2, WIDTH)

    def forward(self, bag: Any) -> Tensor:
        h = self.start(bag)
        graph = bag.pool(bag.pool(h, "mean"), "mean") + self.told(bag.graph_attr["about"])
        h = self.other(bag.propagate(self.second, h + bag.spread(graph))).relu()
        return self.head(bag.pool(bag.pool(h, "max"), "sum"))


class Partial(Small):
    """Functions that are not defined for 0, or have no derivative there, of sums and pools that are never 0 but in padding."""

    def __init__(self, marks: int = 1) -> None:
        super().__init__(marks)
        self.mean, self.sum, self.rest = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))

    def forward(self, bag: Any) -> Tensor:
        h = self.start(bag).sigmoid() + 0.1
        h = h / bag.propagate(self.first, h).abs().sum(1, keepdim=True).sqrt()
        mean, total = bag.pool(h, "mean"), bag.pool(h, "sum")
        out = self.mean(mean.abs().log()) + self.sum(total.abs().rsqrt()) + self.rest(mean / total)
        nodes = bag.across(h, "sum")
        return self.head(bag.pool(out * out.std(1, keepdim=True), "mean") + bag.pool(self.rest(nodes.abs() ** -0.5), "mean"))


class Sources(nn.Module):
    """A conv that does not read the row that its messages go to."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = SAGEConv(WIDTH, WIDTH, aggr="max")

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.conv((x, None), edge_index)


class Plain(nn.Module):
    """Counts nothing: no norm."""

    def __init__(self, marks: int = 1) -> None:
        super().__init__()
        self.embed, self.conv, self.head = nn.Linear(3 + marks, WIDTH), GINConv(nn.Linear(WIDTH, WIDTH)), nn.Linear(WIDTH, 2)
        self.gat, self.sources = GATConv(WIDTH, WIDTH, add_self_loops=False), Sources()

    def forward(self, bag: Any) -> Tensor:
        h: Any = self.embed(torch.cat([bag.x, bag.mark], 1))
        for conv in (self.conv, self.gat, self.sources, self.sources):
            h = bag.propagate(conv, h).relu()
        return self.head(bag.pool(bag.pool(h), "max"))


def _own(conv: str, kind: Any = enfa.DSGNN, **options: Any) -> Any:
    edges = {"edge_channels": [8, 3]} if conv == "gine" else {}
    return lambda: kind([5, 3], WIDTH, 2, 3, conv, **edges, **options)


OWN: dict[str, Any] = {
    "gine": _own("gine"),
    "gin": _own("gin"),
    "gin, concat": _own("gin", jk="concat", readout="mean"),
    "gine, dropout": _own("gine", dropout=0.5),
    "graphconv, max": _own("graphconv", readout="max", residual=True),
    "gcn, sum": _own("gcn", jk="sum", norm="layer"),
    "dss": _own("gin", enfa.DSSGNN, context="dss"),
    "dss, gcn": _own("gcn", enfa.DSSGNN, context="mpnn"),
    "mpnn": _own("gine", enfa.DSSGNN, context="mpnn"),
    "esan": _own("gin", enfa.ESAN, channels=[4, 3], jk="concat"),
    "esan, invariant": _own("gine", enfa.ESAN, invariant=True),
    "sswl": _own("gine", enfa.SSWLGNN),
    "sswl, gin": _own("gin", enfa.SSWLGNN),
    "sun": lambda: enfa.SUN([5, 3], WIDTH, 2, 2, "gine", edge_channels=[8, 3]),
    "attention": lambda: enfa.Subgraphormer([5, 3], WIDTH, 2, 2, "transformer", 2, edge_channels=[8, 3]),
    "root": _own("gine", readout="root"),
    "sage": lambda: enfa.DSGNN([5, 3], WIDTH, 2, 2, lambda ins, outs: SAGEConv(ins, outs), jk="concat"),
}
EVERY_MODEL: dict[str, Any] = {kind.__name__: kind for kind in (*MODELS, *ROOTED, Egos, Looped, Partial, Plain, Told)} | OWN


def graphs_for(name: str, seed: int = 1, count: int = 4, size: int = 8) -> list[Data]:
    """Degenerate ones too. More kinds of edges than lists are made for."""
    channels: Any = [3, 2] if EVERY_MODEL[name] is Molecules else [5, 3] if name in OWN else 3
    edges = [3, 2] if EVERY_MODEL[name] is Molecules else [8, 3] if name in OWN else None
    more = {} if name == "Looped" else {"loops": True, "parallel": True}
    graphs = random_graphs(count, size, seed=seed, channels=channels, edge_channels=edges, **more)
    others = degenerate_graphs(channels, edges, seed)
    # what a conv with loops of its own refuses; and what has no nodes to pool, so that its pool is 0
    graphs += [
        g for kind, g in others.items() if not (name == "Looped" and "loop" in kind) and (g.num_nodes or name != "Partial")
    ]
    for i, graph in enumerate(graphs):
        graph.about = torch.tensor([[float(i), 1.0]])
    return graphs


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
