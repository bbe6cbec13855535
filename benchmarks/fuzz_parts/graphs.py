"""Random small graphs, the kinds on which index arithmetic and BatchNorm break well represented."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

Channels = int | list[int]
Pairs = list[tuple[int, int]]

DIRECTED = {"directed", "directed loops"}
FAMILIES = {  # name: how often
    "complete": 5, "star": 2, "cycle": 2, "path": 2, "two nodes": 3, "one node": 3, "one node, loop": 1, "no edges": 1,
    "isolated nodes": 2, "two components": 2, "random": 6, "loops": 2, "parallel": 1, "no nodes": 0.3,
    "directed": 3, "directed loops": 1,
}  # fmt: skip
FEATURES = ("equal", "equal in a graph", "few", "any")


def pick(rng: np.random.Generator, values: dict | Sequence, *without: object) -> object:
    """One of some values; a dictionary tells how often each."""
    names = [v for v in values if v not in without]
    weights = np.array([values[v] for v in names] if isinstance(values, dict) else [1.0] * len(names))
    return names[int(rng.choice(len(names), p=weights / weights.sum()))]


def _shape(rng: np.random.Generator, family: str) -> tuple[int, Pairs]:
    """Nodes, and each undirected edge once; each directed one for directed families."""
    n = int(rng.integers(3, 8))
    every = list(combinations(range(n), 2))
    some = [pair for pair in every if rng.random() < rng.choice([0.2, 0.5])]
    if family == "complete":
        n = int(rng.integers(1, 10))
        return n, list(combinations(range(n), 2))
    if family == "star":
        return n + 1, [(0, v) for v in range(1, n + 1)]
    if family in ("cycle", "path"):
        return n, [(v, v + 1) for v in range(n - 1)] + ([(0, n - 1)] if family == "cycle" else [])
    if family == "two nodes":
        return 2, [(0, 1)]
    if family.startswith("one node"):
        return 1, [(0, 0)] if family.endswith("loop") else []
    if family in ("no edges", "no nodes"):
        return (n - 1 if family == "no edges" else 0), []
    if family == "isolated nodes":
        return n + int(rng.integers(1, 3)), some
    if family == "two components":
        return 2 * (n // 2 + 1), [(u + k, v + k) for k in (0, n // 2 + 1) for u, v in combinations(range(n // 2 + 1), 2)]
    if family == "loops":
        return n, some + [(v, v) for v in range(n) if rng.random() < 0.5]
    if family == "parallel":
        return n, some + some[:2]
    if family in DIRECTED:
        both = [(u, v) for u in range(n) for v in range(n) if u != v or family == "directed loops"]
        return n, [pair for pair in both if rng.random() < 0.3]
    return n, some


def _features(rng: np.random.Generator, count: int, channels: Channels, how: str) -> Tensor:
    if isinstance(channels, list):
        drawn = np.stack([rng.integers(0, c, count) for c in channels], 1)
    elif how == "any":
        drawn = rng.standard_normal((count, channels))
    else:
        drawn = rng.choice([0.0, -0.0, 1.0, -0.5, 0.3], (count, channels))
    if how.startswith("equal") and count:
        drawn[:] = drawn[0]
    return torch.from_numpy(drawn)


def _graph(rng: np.random.Generator, family: str, channels: Channels, edge_channels: Channels | None, how: str) -> Data:
    """Nodes are numbered, and edges ordered, at random."""
    n, pairs = _shape(rng, family)
    loop = np.array([u == v for u, v in pairs], bool)
    ends = rng.permutation(n)[np.array(pairs, np.int64).reshape(-1, 2)]
    directed = family in DIRECTED
    both = ends if directed else np.concatenate([ends, ends[~loop, ::-1]])
    order = rng.permutation(len(both))
    graph = Data(x=_features(rng, n, channels, how), edge_index=torch.from_numpy(both[order].T.copy()))
    if edge_channels is not None:
        there = _features(rng, len(ends), edge_channels, how)
        # the two directions of an edge may differ; of parallel ones it would be open which belong together
        alike = family == "parallel" or rng.random() < 0.7
        back = there if alike else _features(rng, len(ends), edge_channels, how)
        graph.edge_attr = (there if directed else torch.cat([there, back[torch.from_numpy(~loop)]]))[order]
    return graph


def draw_graphs(
    rng: np.random.Generator, count: int, channels: Channels, edge_channels: Channels | None, undirected: bool, how: str
) -> tuple[list[Data], list[str]]:
    """Some graphs, and the family that each is of. Some come twice, so that graphs share all their rows."""
    left_out = DIRECTED if undirected else ()
    one_family = pick(rng, FAMILIES, *left_out) if rng.random() < 0.4 else None
    graphs: list[Data] = []
    families: list[str] = []
    for _ in range(count):
        if graphs and rng.random() < 0.15:
            again = int(rng.integers(len(graphs)))
            graphs.append(graphs[again].clone())
            families.append(families[again])
            continue
        family = str(one_family or pick(rng, FAMILIES, *left_out))
        graphs.append(_graph(rng, family, channels, edge_channels, how))
        families.append(family)
    single = rng.random() < 0.5
    for graph in graphs:
        if single and graph.x.is_floating_point():
            graph.x = graph.x.float()
    if how == "equal":
        for name in ("x", "edge_attr"):
            rows = [g[name][:1] for g in graphs if name in g and len(g[name])]
            for graph in graphs:
                if rows and name in graph:
                    graph[name] = rows[0].expand(len(graph[name]), -1).clone()
    return graphs, families
