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

# every policy that is shipped, with each of its parameters
EVERY: dict[str, enfa.Policy] = {
    **POLICIES,
    "distances": enfa.NodeMarking(distances=1),
    "edge marking": enfa.EdgeMarking(),
    "edge degrees": enfa.EdgeMarking("degrees", bins=3),
    "edge distances": enfa.EdgeMarking("distances"),
    "ego": enfa.EgoNets(1),
    "ego mark": enfa.EgoNets(2, mark=True),
    "ego isolate": enfa.EgoNets(1, mark=True, isolate=True),
    "ego distances": enfa.EgoNets(2, mark="distances"),
    "neighbors": enfa.NeighborMarking(1),
    "neighbor distances": enfa.NeighborMarking(1, mark="distances"),
    "pairs": enfa.PairMarking(),
    "pair distances": enfa.PairMarking(1, mark="distances"),
    "pairs seen": enfa.PairMarking(1, hide=False),
    "3 nodes": enfa.Reconstruction(3, max_subgraphs=6, seed=1),
    "all but 2": enfa.Reconstruction(-2, max_subgraphs=6),
    "some marked": enfa.Subsample(enfa.NodeMarking(distances=2), count=2),
    "some edges": enfa.Subsample(enfa.EdgeMarking(), fraction=0.4),
    "central": enfa.MostCentral(enfa.NodeMarking(), 2),
    "central ego": enfa.MostCentral(enfa.EgoNets(1), 1),
}
ROOTED = {
    "mark", "edge", "distances", "edge marking", "edge degrees", "edge distances", "ego", "ego mark", "ego isolate",
    "ego distances", "neighbors", "neighbor distances", "pairs", "pair distances", "pairs seen", "some marked",
    "some edges", "central", "central ego",
}  # fmt: skip

ConvMaker = Callable[[int, int], nn.Module]


def _gin(in_channels: int, out_channels: int) -> nn.Module:
    """As users write it: BatchNorm deep inside the MLP."""
    inside = nn.Sequential(nn.Linear(in_channels, out_channels), nn.BatchNorm1d(out_channels))
    return pyg.GINConv(nn.Sequential(inside, nn.ReLU(), nn.Linear(out_channels, out_channels)), train_eps=True)


def conv_of(name: str, edge_dim: int | None) -> str | ConvMaker:
    """A conv by name: the package's own, or one that a user would bring."""
    bring: dict[str, ConvMaker] = {
        "GINConv": _gin,
        "GINEConv": lambda i, o: pyg.GINEConv(nn.Sequential(nn.Linear(i, o), nn.ReLU(), nn.Linear(o, o)), edge_dim=edge_dim),
        "GraphConv": lambda i, o: pyg.GraphConv((i, i), o),
        "SAGEConv": lambda i, o: pyg.SAGEConv((i, i), o),
        "GATv2Conv": lambda i, o: pyg.GATv2Conv((i, i), o, heads=2, concat=False, add_self_loops=False, edge_dim=edge_dim),
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


# Every policy meets one conv of each kind: sums, edges, degrees, two weights, attention. All convs meet the policies above.
KINDS = ("gin", "gine", "gcn", "GraphConv", "GATv2Conv")
EVERY_FACTORS = {**FACTORS, "conv": KINDS, "policy": tuple(EVERY), "readout": ("sum", "mean", "max", "root", "node")}


def allowed_every(case: dict) -> bool:
    """Marks on edges need a conv that reads them, and give GINE something to read; the readout of roots needs roots."""
    conv, policy = case.get("conv"), case.get("policy")
    marks = None if policy is None else EVERY[policy].edge_mark_channels > 0
    if marks and conv is not None and conv not in READS_EDGES:
        return False
    if marks is False and not allowed(case):
        return False
    return not (case.get("readout") == "root" and policy is not None and policy not in ROOTED)


def model_of(case: dict, layers: int = 3, seed: int = 0) -> enfa.DSGNN | enfa.DSSGNN:
    """A model with every bias and norm weight drawn at random.

    Fresh norms have zero bias, so constant channels would meet ReLU exactly at its kink, where the sign of a rounding
    error decides the gradient: that would compare noise with noise.
    """
    torch.default_generator.manual_seed(seed)  # models are drawn on the CPU; torch.manual_seed takes a millisecond
    edge_channels = EDGE_CHANNELS[case["edges"]]
    policy = EVERY[case["policy"]]
    edge_dim = HIDDEN if isinstance(edge_channels, list) else edge_channels
    if policy.edge_mark_channels:
        edge_dim = (edge_dim or 0) + policy.edge_mark_channels
    options = {k: case[k] for k in ("readout", "jk", "bag", "dropout", "residual", "share")}
    options["norm"] = None if case["norm"] == "none" else case["norm"]
    # graphs may have edge attributes that the model does not read, but it must not be told to read them
    reads = edge_channels if case["conv"] in READS_EDGES else None
    options |= {"edge_channels": reads, "mark_channels": policy.mark_channels}
    options["edge_mark_channels"] = policy.edge_mark_channels
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


def modes_of(model: nn.Module) -> list[str]:
    """Training and evaluation; or training alone, where neither a norm nor dropout makes them differ: it is the same again."""
    differ = any(isinstance(m, nn.BatchNorm1d) or (isinstance(m, nn.Dropout) and m.p > 0) for m in model.modules())
    return ["train", "eval"] if differ else ["train"]


def live_model(case: dict, graphs: list[Data], layers: int = 3) -> enfa.DSGNN | enfa.DSSGNN:
    """A model through which gradients flow down to the first layer.

    In a small random model every unit of the head may be dead: then all plans agree, and nothing has been tested.
    """
    for seed in range(100):
        model = model_of(case, layers, seed)
        trained = copy.deepcopy(model).train()
        trained(enfa.make_plan(graphs, EVERY[case["policy"]], model)).square().sum().backward()
        # a bias before a norm has none
        if all(p.grad is not None and bool(p.grad.any()) for p in trained.layers[0].conv.parameters() if p.ndim > 1):
            return model
    raise AssertionError(f"no live model for {case}")
