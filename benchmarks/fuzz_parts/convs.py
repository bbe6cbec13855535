"""Convs, as the package takes them and as PyG has them."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn
from torch_geometric import nn as pyg

Maker = Callable[[int, int], nn.Module]

OWN = ("gin", "gine", "graphconv", "gcn")
READS_EDGES = {"gine", "GINEConv", "GATv2Conv", "TransformerConv", "ResGatedGraphConv"}
NEEDS_EDGES = {"gine", "GINEConv"}
CONVS = {  # name: how often
    "gin": 5, "gine": 5, "graphconv": 3, "gcn": 4, "GINConv": 1, "GINEConv": 1, "GraphConv": 1, "GraphConv max": 1,
    "SAGEConv": 1, "SAGEConv max": 1, "GATConv": 1, "GATv2Conv": 1, "TransformerConv": 1, "EdgeConv": 1,
    "ResGatedGraphConv": 1, "LEConv": 1,
}  # fmt: skip


def _deep(i: int, o: int) -> nn.Module:
    """As users write it: BatchNorm deep inside the MLP."""
    return nn.Sequential(nn.Sequential(nn.Linear(i, o), nn.BatchNorm1d(o)), nn.ReLU(), nn.Linear(o, o))


def _mlp(i: int, o: int) -> nn.Module:
    return nn.Sequential(nn.Linear(i, o), nn.ReLU(), nn.Linear(o, o))


def brought(name: str, edge_dim: int | None) -> Maker:
    """A conv of PyG, as a user brings it; both sides are made by it."""
    both = {"add_self_loops": False}
    made: dict[str, Maker] = {
        "GINConv": lambda i, o: pyg.GINConv(_deep(i, o), train_eps=True),
        "GINEConv": lambda i, o: pyg.GINEConv(_mlp(i, o), edge_dim=edge_dim),
        "GraphConv": lambda i, o: pyg.GraphConv((i, i), o, aggr="mean"),
        "GraphConv max": lambda i, o: pyg.GraphConv((i, i), o, aggr="max"),
        "SAGEConv": lambda i, o: pyg.SAGEConv((i, i), o),
        "SAGEConv max": lambda i, o: pyg.SAGEConv((i, i), o, aggr="max", project=True),
        "GATConv": lambda i, o: pyg.GATConv((i, i), o, heads=2, concat=False, **both),
        "GATv2Conv": lambda i, o: pyg.GATv2Conv((i, i), o, heads=2, concat=False, edge_dim=edge_dim, **both),
        "TransformerConv": lambda i, o: pyg.TransformerConv((i, i), o, heads=2, concat=False, edge_dim=edge_dim),
        "EdgeConv": lambda i, o: pyg.EdgeConv(_mlp(2 * i, o)),
        "ResGatedGraphConv": lambda i, o: pyg.ResGatedGraphConv((i, i), o, edge_dim=edge_dim),
        "LEConv": lambda i, o: pyg.LEConv((i, i), o),
    }
    return made[name]


def _update(i: int, o: int, norm: str | None) -> nn.Sequential:
    return nn.Sequential(nn.Linear(i, o), plain_norm(norm, o), nn.ReLU(), nn.Linear(o, o))


def plain_norm(norm: str | None, channels: int) -> nn.Module:
    return {"batch": nn.BatchNorm1d, "layer": nn.LayerNorm, None: nn.Identity}[norm](channels)


def plain_conv(name: str, i: int, o: int, edge_dim: int | None, norm: str | None) -> nn.Module:
    """What PyG has for a conv of that name."""
    if name == "gin":
        return pyg.GINConv(_update(i, o, norm))
    if name == "gine":
        return pyg.GINEConv(_update(i, o, norm), edge_dim=edge_dim)
    if name == "graphconv":
        return pyg.GraphConv(i, o)
    if name == "gcn":  # the reference adds the loops, also where there are some: GCNConv would not
        return pyg.GCNConv(i, o, add_self_loops=False)
    return brought(name, edge_dim)(i, o)


RENAMED = {  # the package's names -> PyG's
    "gin": {"update.": "nn."},
    "gine": {"update.": "nn.", "edge.": "lin."},
    "graphconv": {"own.": "lin_root.", "incoming.": "lin_rel."},
    "gcn": {"update.weight": "lin.weight", "update.bias": "bias"},
}


def renamed(conv: str, name: str) -> str:
    """What a parameter or buffer ``name`` of the package's conv is called in PyG's."""
    for mine, theirs in RENAMED.get(conv, {"": ""}).items():
        if name.startswith(mine):
            return theirs + name.removeprefix(mine)
    raise KeyError(f"Expected a tensor of {conv}, got {name}")
