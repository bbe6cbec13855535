"""What a case is: a function of the seed and its number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch_geometric.data import Data

import enfa
from fuzz_parts.convs import CONVS, NEEDS_EDGES, OWN, READS_EDGES, brought
from fuzz_parts.graphs import FEATURES, Channels, draw_graphs, pick

POLICIES = {  # name: how often
    "node_marking": 5, "node_deletion": 4, "edge_deletion": 3, "edge_marking": 3, "ego_nets": 4, "reconstruction": 2,
    "subsample": 2,
}  # fmt: skip
# since then: one case in ten gives way to these, and the others stay as they were
ADDED = ("ego_nets", "neighbor_marking", "most_central")
PLANS = {
    "distinct": 8, "slice": 5, "ego": 3, "extend": 2, "padded": 2, "drawn": 1, "saved": 0.5, "first layers": 0.5,
}  # fmt: skip
MODELS = {"DSGNN": 3, "dss": 1, "identity": 1, "mpnn": 1}


@dataclass
class Case:
    """``chosen``: positions, in ``graphs``, of the graphs in the batch; ``first``: so many are compiled before the rest."""

    number: int
    seed: int
    settings: dict[str, Any]  # what counts are kept of
    options: dict[str, Any]  # of the model
    policy: enfa.Policy
    draw: enfa.Subsample | None  # from the compiled bags of the policy
    epoch: int
    graphs: list[Data]
    families: list[str]
    chosen: list[int]
    first: int
    hidden: int
    out: int
    channels: Channels
    edge_dim: int | None
    undirected: bool  # as policies that edit edges need graphs

    def rng(self, *stream: int) -> np.random.Generator:
        """Numbers for other things than the case itself."""
        return np.random.default_rng([self.seed, self.number, 1, *stream])

    def model(self, twin: int = 0) -> enfa.DSGNN | enfa.DSSGNN:
        """The model in float64, on its way from nowhere: no bias, norm or running statistic is as fresh ones are.

        Zero biases would put constant channels at the kink of ReLU. ``twin`` > 0: other weights, and norms that do not
        blow up rounding (see :mod:`fuzz_parts.verdict`).
        """
        rng = self.rng(0, twin)
        torch.default_generator.manual_seed(int(rng.integers(2**62)))
        s = self.settings
        conv = s["conv"] if s["conv"] in OWN else brought(s["conv"], self.edge_dim)
        first = (self.channels, self.hidden, self.out, s["depth"], conv)
        if s["model"] == "DSGNN":
            model: enfa.DSGNN | enfa.DSSGNN = enfa.DSGNN(*first, **self.options)
        else:
            model = enfa.DSSGNN(*first, s["model"], **self.options)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim == 1:
                    parameter.add_(torch.empty_like(parameter).uniform_(-0.3, 0.3))
            for linear in (model.subgraph_mlp[0], model.head[0]):
                linear.bias.add_(0.2)  # type: ignore[operator]  # fewer dead models, which test nothing
            for part in model.modules():
                if isinstance(part, nn.BatchNorm1d):
                    part.running_mean.normal_(0, 0.3)  # type: ignore[union-attr]
                    part.running_var.uniform_(0.5, 2.0)  # type: ignore[union-attr]
                    part.eps = 0.1 if twin else part.eps
        return model.double().train(s["mode"] == "train")

    def __str__(self) -> str:
        sizes = [f"{f} of {g.num_nodes} nodes" for f, g in zip(self.families, self.graphs)]
        return (
            f"{self.settings} {self.policy!r}, {self.options}, hidden {self.hidden}, draw {self.draw!r}, "
            f"graphs {sizes}, chosen {self.chosen}, first {self.first}"
        )


def _policy(rng: np.random.Generator, name: str) -> enfa.Policy:
    few = int(rng.integers(0, 3))
    if name == "node_marking":
        return enfa.NodeMarking(*([few] if rng.random() < 0.4 else []))
    if name == "node_deletion":
        return enfa.NodeDeletion(bool(rng.random() < 0.5))
    if name == "edge_deletion":
        return enfa.EdgeDeletion()
    if name == "edge_marking":
        return enfa.EdgeMarking(pick(rng, (None, "degrees", "distances")), few, int(rng.integers(1, 5)))  # type: ignore[arg-type]
    if name == "ego_nets":
        return enfa.EgoNets(few, bool(rng.random() < 0.5), bool(rng.random() < 0.5))
    if name == "reconstruction":
        return enfa.Reconstruction(int(rng.choice([1, 2, 3, 4, -1, -2])), int(rng.choice([2, 6, 20])), few)
    return _part(rng, _policy(rng, str(pick(rng, POLICIES, "subsample"))))


def _added(rng: np.random.Generator) -> enfa.Policy:
    name, hops = pick(rng, ADDED), int(rng.integers(1, 4))
    if name == "ego_nets":
        return enfa.EgoNets(hops - 1, "distances", bool(rng.random() < 0.5))
    if name == "neighbor_marking":
        return enfa.NeighborMarking(hops, pick(rng, (True, "distances")))  # type: ignore[arg-type]
    inner = _policy(rng, str(pick(rng, ("node_marking", "ego_nets"))))
    return enfa.MostCentral(pick(rng, (inner, enfa.NeighborMarking(hops))), int(rng.integers(1, 4)))  # type: ignore[arg-type]


def _part(rng: np.random.Generator, policy: enfa.Policy) -> enfa.Subsample:
    seed = int(rng.integers(9))
    if rng.random() < 0.5:
        return enfa.Subsample(policy, fraction=float(rng.choice([0.1, 0.4, 0.8, 1.0])), seed=seed)
    return enfa.Subsample(policy, count=int(rng.integers(1, 4)), seed=seed)


def draw_case(seed: int, number: int) -> Case:
    rng = np.random.default_rng([seed, number, 0])
    policy, later = _policy(rng, str(pick(rng, POLICIES))), np.random.default_rng([seed, number, 3])
    policy = _added(later) if later.random() < 0.1 else policy
    inner = policy.policy if isinstance(policy, enfa.Subsample) else policy
    marks_edges = policy.edge_mark_channels > 0
    conv = str(pick(rng, CONVS, *([c for c in CONVS if c not in READS_EDGES] if marks_edges else [])))
    features = str(pick(rng, FEATURES))
    channels: Channels = [3, 2] if rng.random() < 0.4 else 2
    edges = conv in READS_EDGES and (rng.random() < 0.7 or (conv in NEEDS_EDGES and not marks_edges))
    edge_channels: Channels | None = ([2, 2] if rng.random() < 0.4 else 2) if edges else None
    hidden = int(rng.choice([3, 4, 6]))
    edge_dim = None if edge_channels is None else hidden if isinstance(edge_channels, list) else edge_channels
    if marks_edges:
        edge_dim = (edge_dim or 0) + policy.edge_mark_channels
    # attributes that a conv does not read, or a model is not told of, must not matter
    attributes = edge_channels or (2 if conv not in READS_EDGES and rng.random() < 0.3 else None)
    rooted = not isinstance(inner, (enfa.NodeDeletion, enfa.Reconstruction))
    readout = str(pick(rng, {"sum": 3, "mean": 2, "max": 2, "root": 3, "node": 2}, *(() if rooted else ("root",))))
    model, norm = str(pick(rng, MODELS)), pick(rng, {"batch": 2, "layer": 1, None: 1})
    dropout = float(rng.choice([0.0, 0.0, 0.0, 0.0, 0.3]))
    left_out = {"drawn"} if isinstance(policy, enfa.Subsample) else set()
    if readout in ("root", "node"):  # only predictions of graphs are cut to fewer layers or padded
        left_out |= {"first layers", "padded"}
    if model != "DSGNN":  # what sums over bags is not cut to fewer layers
        left_out.add("first layers")
    plan = str(pick(rng, PLANS, *left_out))
    count = int(rng.choice([1, 1, 1, 2, 2, 3, 4, 6]))
    more = int(rng.integers(0, 4)) if plan in ("slice", "extend", "drawn", "saved") else 0
    undirected = isinstance(inner, (enfa.EdgeDeletion, enfa.EdgeMarking))
    graphs, families = draw_graphs(rng, count + more, channels, attributes, undirected, features)
    chosen = rng.permutation(len(graphs))[:count] if more or rng.random() < 0.5 else np.arange(count)
    if plan not in ("slice", "extend", "drawn", "saved"):
        chosen = np.arange(count)
    settings = {
        "policy": policy.name(), "conv": conv, "readout": readout, "model": model, "norm": str(norm),
        "mode": str(pick(rng, {"train": 3, "eval": 2})), "plan": plan, "depth": int(rng.choice([1, 2, 2, 3, 3, 4, 5])),
        "features": ("categorical, " if isinstance(channels, list) else "float, ") + features, "graphs": count,
        "dropout": dropout > 0,
    }  # fmt: skip
    options = {
        "edge_channels": edge_channels, "norm": norm, "dropout": dropout, "readout": readout,
        "bag": str(pick(rng, ("mean", "sum"))), "jk": str(pick(rng, ("last", "concat", "sum"))),
        "residual": bool(rng.random() < 0.4), "mark_channels": policy.mark_channels,
        "edge_mark_channels": policy.edge_mark_channels, "share": pick(rng, (None, "dataset", "graph")),
    }  # fmt: skip
    part = _part(rng, policy) if plan == "drawn" else None
    return Case(
        number, seed, settings, options, policy, part, int(rng.integers(3)) if part else 0, graphs, families,
        chosen.tolist(), int(rng.integers(1, len(graphs) + 1)), hidden, int(rng.integers(1, 3)), channels, edge_dim,
        undirected,
    )  # fmt: skip
