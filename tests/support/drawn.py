"""Models drawn at random: a few verbs of a bag, one reading what others gave, with norms and joins in between."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import MLP, GATv2Conv, GINConv, GINEConv, GraphConv, SAGEConv

import enfa

WIDTH = 4
HOWS = ("sum", "mean", "max")
# policies of ``cases.EVERY`` in which every node has a subgraph
OWN = {"mark", "distances", "ego", "ego mark", "ego isolate", "ego distances"}


def shaken(model: nn.Module) -> nn.Module:
    """With every bias and norm weight off its fresh value: zero biases put constant channels on the kink of a ReLU."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.empty_like(parameter).uniform_(-0.3, 0.3))
    return model


def _conv(rng: random.Random, edges: bool) -> nn.Module:
    if edges:
        attending = GATv2Conv((WIDTH, WIDTH), WIDTH, add_self_loops=False, edge_dim=WIDTH)
        return rng.choice([GINEConv(MLP([WIDTH, WIDTH, WIDTH])), attending])
    convs = [
        GINConv(MLP([WIDTH, WIDTH, WIDTH])), GraphConv((WIDTH, WIDTH), WIDTH), SAGEConv((WIDTH, WIDTH), WIDTH, aggr="max"),
        GATv2Conv((WIDTH, WIDTH), WIDTH, add_self_loops=False),
    ]  # fmt: skip
    return rng.choice(convs)


class Drawn(nn.Module):
    """For graphs with 3 columns of features and ``edge_attr`` columns of edge attributes. ``roots``: every subgraph has some;
    ``own``: and every node is that of one subgraph.

    Value 0 is the embedded start; value i is what instruction i - 1 gives: a verb, the value it reads, how, and a value to
    join. All values are pooled into the output, so none is drawn in vain.
    """

    def __init__(
        self, seed: int, policy: enfa.Policy, edge_attr: int, verbs: int, roots: bool, own: bool, dropout: float = 0.0
    ) -> None:
        super().__init__()
        torch.manual_seed(seed)
        rng = random.Random(seed)
        self.embed = nn.Linear(3 + policy.mark_channels, WIDTH)
        self.edges = nn.Linear(edge_attr + policy.edge_mark_channels or 1, WIDTH)
        self.edge_attr, self.reads_edges = edge_attr > 0, edge_attr + policy.edge_mark_channels > 0
        self.kinds, self.steps = ["pairs"], []
        self.convs, self.scores, self.after = nn.ModuleDict(), nn.ModuleDict(), nn.ModuleList()
        for i in range(verbs):
            read = rng.randrange(len(self.kinds))
            verb, kind = rng.choice(self._offered(self.kinds[read], roots, own))
            how = rng.choice((*HOWS, "softmax") if verb in ("pool", "about") else HOWS)
            if verb in ("propagate", "between"):
                how = "edges" if self.reads_edges and rng.random() < 0.5 else ""
                self.convs[str(i)] = _conv(rng, bool(how))
            self.scores[str(i)] = nn.Linear(WIDTH, 1)
            same = [n for n, k in enumerate(self.kinds) if k == kind]
            join = rng.choice(same) if same and rng.random() < 0.6 else None
            self.steps.append((verb, read, how, join))
            self.kinds.append(kind)
            after = [nn.BatchNorm1d(WIDTH), nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.Identity()]
            self.after.append(nn.Sequential(rng.choice(after), nn.Dropout(dropout), nn.ReLU()))
        self.pools = [(rng.choice((*HOWS, "softmax")), rng.choice(HOWS)) for _ in self.kinds]
        self.heads = nn.ModuleList(nn.Linear(WIDTH, 2) for _ in self.kinds)
        shaken(self)

    @staticmethod
    def _offered(kind: str, roots: bool, own: bool) -> Sequence[tuple[str, str]]:
        if kind == "subgraphs":
            return [("spread", "pairs"), *[("about", "nodes")] * roots]
        if kind == "nodes":
            return [("propagate", "nodes"), ("spread", "pairs")]
        found = [("propagate", "pairs"), ("propagate", "pairs"), ("across", "nodes"), ("pool", "subgraphs")]
        found += [("root", "subgraphs")] if roots else []
        return found + ([("diagonal", "nodes"), ("between", "pairs"), ("between", "pairs")] if own else [])

    def forward(self, bag: Any) -> Tensor:
        values = [self.embed(torch.cat([bag.x, bag.mark], 1))]
        edge = None
        if self.reads_edges:
            edge = self.edges(torch.cat([bag.edge_attr, bag.edge_mark], 1) if self.edge_attr else bag.edge_mark)
        for i, (verb, read, how, join) in enumerate(self.steps):
            h = self._verb(bag, verb, values[read], how, str(i), edge)
            h = self.after[i](h)
            values.append(h if join is None else h + values[join])
        return sum(self._pooled(bag, n, value) for n, value in enumerate(values))  # type: ignore[return-value]

    def _verb(self, bag: Any, verb: str, h: Any, how: str, i: str, edge: Any) -> Any:
        if verb in ("propagate", "between"):
            given = (edge,) if how else ()
            return bag.propagate(self.convs[i], h, *given, along="subgraphs" if verb == "between" else "nodes")
        if verb in ("pool", "about"):
            score = self.scores[i](h).tanh() if how == "softmax" else None
            return bag.pool(h, how, score, to="nodes" if verb == "about" else None)
        return bag.across(h, how) if verb == "across" else getattr(bag, verb)(h)

    def _pooled(self, bag: Any, number: int, h: Any) -> Tensor:
        first, second = self.pools[number]
        if self.kinds[number] == "pairs":
            h = bag.pool(h, first, h[:, :1].tanh() if first == "softmax" else None)
        return self.heads[number](bag.pool(h, second)).tanh()
