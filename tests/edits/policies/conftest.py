"""One tester for every policy: plans against the full plan, over convs, readouts, JK, contexts and modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GATv2Conv

import enfa
from enfa.edits.check import check_edits
from enfa.graphs import check_graphs
from enfa.plan.reference.expand import expand
from enfa.testing import assert_same_as_full, degenerate_graphs, random_graphs

torch.set_num_threads(1)

EDGE_CHANNELS = 2


@cache
def graphs_with_edges() -> list[Data]:
    """Random graphs, some with loops and parallel edges, and every degenerate one."""
    some = random_graphs(3, 9, seed=1, edge_channels=EDGE_CHANNELS)
    odd = random_graphs(2, 7, seed=2, edge_channels=EDGE_CHANNELS, loops=True, parallel=True, degree=3.5)
    return some + odd + list(degenerate_graphs(edge_channels=EDGE_CHANNELS).values())


# conv, context, readout, jk, norm, dropout, degrees of sharing: every value of each occurs, most pairs too
CASES: dict[str, dict[str, object]] = {
    "gin": {"conv": "gin"},
    "gin max concat": {"conv": "gin", "readout": "max", "jk": "concat"},
    "gine sum dropout": {"conv": "gine", "jk": "sum", "dropout": 0.3},
    "graphconv mean residual": {"conv": "graphconv", "readout": "mean", "residual": True, "norm": "layer"},
    "gcn concat": {"conv": "gcn", "jk": "concat", "readout": "mean", "bag": "sum"},
    "gatv2": {"conv": "gatv2", "readout": "mean"},
    "gin dss": {"conv": "gin", "context": "dss", "jk": "concat"},
    "gcn dss": {"conv": "gcn", "context": "dss"},
    "gine mpnn": {"conv": "gine", "context": "mpnn", "readout": "mean"},
    "graphconv identity max": {"conv": "graphconv", "context": "identity", "readout": "max", "share": "graph"},
}


def model_for(policy: enfa.Policy, case: str, **more: object) -> torch.nn.Module:
    torch.manual_seed(0)
    options: dict = {**CASES[case], **more}
    marks, width = policy.edge_mark_channels, EDGE_CHANNELS + policy.edge_mark_channels
    conv = options.pop("conv")
    if conv == "gatv2":
        conv = lambda i, o: GATv2Conv(i, o, edge_dim=width, add_self_loops=False)  # noqa: E731
    if not isinstance(conv, str) or conv == "gine":
        options |= {"edge_channels": EDGE_CHANNELS, "edge_mark_channels": marks}
    make = enfa.DSSGNN if "context" in options else enfa.DSGNN
    return make(3, 5, 2, 2, conv, mark_channels=policy.mark_channels, **options)


@pytest.fixture
def exact() -> Callable[..., None]:
    def check(policy: enfa.Policy, case: str, modes: Sequence[str] = ("train", "eval")) -> None:
        assert_same_as_full(model_for(policy, case), policy, graphs_with_edges(), modes=modes)

    return check


def written_out(policy: enfa.Policy, graph: Data) -> list[tuple[dict[int, int], dict[tuple[int, int], int]]]:
    """Every subgraph of one graph as ({node: mark}, {(source, target): mark}); for graphs without parallel edges."""
    graph_set = check_graphs([graph])
    edits = check_edits(graph_set, policy.edits(graph_set), repr(policy))
    bag = expand(graph_set, edits, True)
    found: list[tuple[dict[int, int], dict[tuple[int, int], int]]] = [({}, {}) for _ in range(edits.num_subgraphs)]
    for sub, node, mark in zip(bag.sub.tolist(), bag.node.tolist(), bag.mark.tolist()):
        found[sub][0][node] = mark
    for src, dst, kind in zip(bag.src.tolist(), bag.dst.tolist(), bag.kind.tolist()):
        found[bag.sub[src]][1][int(bag.node[src]), int(bag.node[dst])] = kind % len(edits.edge_marks)
    return found


def distances_in(graph: Data) -> torch.Tensor:
    """[n, n] hop distances, the slow way: powers of the adjacency matrix."""
    n = graph.num_nodes
    near = torch.eye(n)
    step = near.clone()
    step[graph.edge_index[1], graph.edge_index[0]] = 1
    found = torch.full((n, n), n + 1)
    for hop in range(n + 1):
        found = torch.where((near > 0) & (found > n), hop, found)
        near = near @ step
    return found  # [node, root]: symmetric in undirected graphs
