"""What the exactness tester runs over: policies, convs, and models by a few words."""

import copy
from collections.abc import Callable, Iterable

import torch
from torch import nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data

import enfa
from enfa.edits import GraphView

HIDDEN = 6


class TwoMarks(enfa.Policy):
    """One subgraph per edge u -> v: u carries mark 1, v mark 2; a loop carries mark 2."""

    marks = ((0.0,), (1.0,), (-2.0,))

    def bag(self, graph: GraphView) -> Iterable[enfa.Subgraph]:
        for u, v in graph.edge_index.T.tolist():
            one = enfa.Subgraph().mark_node(v, 2)
            yield one if u == v else one.mark_node(u, 1)


class Mixed(enfa.Policy):
    """Deletes nodes, deletes single directed edges and marks nodes, several of each in one subgraph."""

    def bag(self, graph: GraphView) -> Iterable[enfa.Subgraph]:
        n, m = graph.num_nodes, graph.edge_index.shape[1]
        for v in range(n):
            one = enfa.Subgraph().delete_node(v)
            if n > 2:
                one.mark_node((v + 1) % n)
            if n > 4:
                one.delete_node((v + 2) % n)
            for e in {v % m, (2 * v + 1) % m} if m else ():
                one.delete_edge(e)
            yield one
        yield enfa.Subgraph()  # the graph itself


POLICIES: dict[str, enfa.Policy] = {
    "mark": enfa.NodeMarking(),
    "delete": enfa.NodeDeletion(),
    "isolate": enfa.NodeDeletion(isolate=True),
    "edge": enfa.EdgeDeletion(),
    "two marks": TwoMarks(),
    "mixed": Mixed(),
}

ConvMaker = Callable[[int, int], nn.Module]


def _gin(in_channels: int, out_channels: int) -> nn.Module:
    """As users write it: BatchNorm deep inside the MLP."""
    inside = nn.Sequential(nn.Linear(in_channels, out_channels), nn.BatchNorm1d(out_channels))
    return pyg.GINConv(nn.Sequential(inside, nn.ReLU(), nn.Linear(out_channels, out_channels)), train_eps=True)


def conv_of(name: str, edge_dim: int | None) -> str | ConvMaker:
    """A conv by name: the package's own, or one that a user would bring."""
    bring: dict[str, ConvMaker] = {
        "GINConv": _gin,
        "GINEConv": lambda i, o: pyg.GINEConv(
            nn.Sequential(nn.Linear(i, o), nn.ReLU(), nn.Linear(o, o)), edge_dim=edge_dim
        ),
        "GraphConv": lambda i, o: pyg.GraphConv((i, i), o),
        "SAGEConv": lambda i, o: pyg.SAGEConv((i, i), o),
        "GATv2Conv": lambda i, o: pyg.GATv2Conv(
            (i, i), o, heads=2, concat=False, add_self_loops=False, edge_dim=edge_dim
        ),
        "TransformerConv": lambda i, o: pyg.TransformerConv((i, i), o, heads=2, concat=False, edge_dim=edge_dim),
    }
    return bring.get(name, name)


CONVS = (
    "gin", "gine", "graphconv", "gcn", "GINConv", "GINEConv", "GraphConv", "SAGEConv", "GATv2Conv", "TransformerConv",
)  # fmt: skip
READS_EDGES = {"gine", "GINEConv", "GATv2Conv", "TransformerConv"}
NEEDS_EDGES = {"gine", "GINEConv"}

NODE_CHANNELS: dict[str, int | list[int]] = {"float": 2, "categorical": [3, 2]}
EDGE_CHANNELS: dict[str, int | list[int] | None] = {"none": None, "float": 2, "categorical": [2, 2]}

FACTORS = {
    "conv": CONVS,
    "policy": tuple(POLICIES),
    "context": ("none", "dss", "identity", "mpnn"),
    "readout": ("sum", "mean", "max"),
    "jk": ("last", "concat", "sum"),
    "norm": ("batch", "layer", "none"),
    "nodes": tuple(NODE_CHANNELS),
    "edges": tuple(EDGE_CHANNELS),
    "bag": ("mean", "sum"),
    "dropout": (0.0, 0.3),
    "residual": (False, True),
    "share": (None, "dataset", "graph"),
}


def allowed(case: dict) -> bool:
    """GINE cannot do without edge attributes."""
    return not (case.get("conv") in NEEDS_EDGES and case.get("edges") == "none")


def model_of(case: dict, layers: int = 3, seed: int = 0) -> enfa.DSGNN | enfa.DSSGNN:
    """A model with every bias and norm weight drawn at random.

    Fresh norms have zero bias, so constant channels would meet ReLU exactly at its kink, where the sign of a rounding
    error decides the gradient: that would compare noise with noise.
    """
    torch.manual_seed(seed)
    edge_channels = EDGE_CHANNELS[case["edges"]]
    edge_dim = HIDDEN if isinstance(edge_channels, list) else edge_channels
    options = {k: case[k] for k in ("readout", "jk", "bag", "dropout", "residual", "share")}
    options["norm"] = None if case["norm"] == "none" else case["norm"]
    options["edge_channels"] = edge_channels
    first = (NODE_CHANNELS[case["nodes"]], HIDDEN, 2, layers, conv_of(case["conv"], edge_dim))
    if case["context"] == "none":
        model: enfa.DSGNN | enfa.DSSGNN = enfa.DSGNN(*first, **options)
    else:
        model = enfa.DSSGNN(*first, case["context"], **options)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.empty_like(parameter).uniform_(-0.3, 0.3))
    return model


def live_model(case: dict, graphs: list[Data], layers: int = 3) -> enfa.DSGNN | enfa.DSSGNN:
    """A model through which gradients flow down to the first layer.

    In a small random model every unit of the head may be dead: then all plans agree, and nothing has been tested.
    """
    for seed in range(100):
        model = model_of(case, layers, seed)
        trained = copy.deepcopy(model).train()
        trained(enfa.make_plan(graphs, POLICIES[case["policy"]], model.spec)).square().sum().backward()
        # a bias before a norm has none
        if all(p.grad is not None and bool(p.grad.any()) for p in trained.layers[0].conv.parameters() if p.ndim > 1):
            return model
    raise AssertionError(f"no live model for {case}")
