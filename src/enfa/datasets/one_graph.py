"""One graph whose nodes, or pairs of nodes, have labels: some to train on, some to validate and to test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from enfa.datasets.assemble import METRICS, channels_of, labels_from
from enfa.datasets.benchmark import PARTS, REGRESSION, Channels, Metric, Task
from enfa.datasets.npz.read import KNOWN, Need, check_names, check_needs, flat_graphs, read_npz, stored

__all__ = ["OneGraph", "graph_from_npz", "links_from_npz", "nodes_from_npz"]

MASKS = {"train": "train_mask", "valid": "val_mask", "test": "test_mask"}  # as PyG's Planetoid has them
SHARES = {"test": 0.1, "valid": 0.05}  # of the edges; the others are for training


@dataclass(frozen=True, eq=False)
class OneGraph:
    """A graph, and labels of its nodes (``level="nodes"``) or of pairs of them (``"links"``)."""

    name: str
    graph: Data = field(repr=False)
    level: str
    task: Task
    metric: Metric
    num_outputs: int
    in_channels: Channels
    edge_channels: Channels | None
    labels: Tensor = field(repr=False)  # int64 [n] classes, or float32 [n or pairs, outputs]
    parts: Mapping[str, np.ndarray] = field(repr=False)  # nodes, or pairs, to train, validate and test on
    pairs: np.ndarray | None = field(default=None, repr=False)  # int64 [pairs, 2]
    num_folds: int = 1
    directed: bool = False
    targets = mean = std = classes = elements = None

    def __post_init__(self) -> None:
        for part in PARTS:
            if not len(self.parts[part]):
                raise ValueError(f"{self.name}: the split {part!r} is empty")
        known = REGRESSION if self.task == "regression" else ("accuracy",) if self.task == "multiclass" else ("rocauc", "ap")
        if self.metric not in known:
            raise ValueError(f"{self.name}: Expected the metric of a {self.task} task to be in {known}, got {self.metric!r}")


def _as_flat(path: Path) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """All arrays, and those of the graph by the names that files of many graphs have."""
    arrays = read_npz(path, (), graphs=False)
    check_names(path, arrays, KNOWN | {"edge_index", "pairs", *MASKS.values()})
    if "num_nodes" in arrays and arrays["num_nodes"].size != 1:
        raise ValueError(f"{path}: Expected one graph for labels of nodes or links, got {arrays['num_nodes'].size}")
    index = arrays["edge_index"].T if "edge_index" in arrays else arrays.get("edges")
    if index is None or index.ndim != 2 or index.shape[1] != 2:
        got = sorted(arrays) if index is None else f"shape {list(index.T.shape)}"
        raise ValueError(f"{path}: Expected edges in an array 'edge_index' [2, edges], got {got}")
    rows = next((arrays[name] for name in ("x", "node_label", "y") if name in arrays), None)
    if rows is None and "num_nodes" not in arrays:
        raise ValueError(f"{path}: Expected features in an array 'x' [nodes, columns], or 'num_nodes', got {sorted(arrays)}")
    count = int(arrays["num_nodes"].reshape(-1)[0]) if rows is None else len(rows)
    sizes = {"num_nodes": np.array([count]), "num_edges": np.array([len(index)]), "edges": np.ascontiguousarray(index)}
    kept = ("x", "node_label", "edge_attr", "directions")
    return arrays, {**{name: arrays[name] for name in kept if name in arrays}, **sizes}


def _read(path: Path, needs: Sequence[Need] = ()) -> tuple[dict[str, np.ndarray], Data, Channels, Channels | None, bool]:
    """The last: whether edges are directed."""
    arrays, named = _as_flat(path)
    check_needs(path, arrays, needs)
    flat = flat_graphs(path, named)
    edges = None
    if flat.edge_attr is not None:
        edges = channels_of(str(path), "edge_attr", flat.edge_attr, stored(arrays, "edge_categories"))
    nodes = channels_of(str(path), "x", flat.x, stored(arrays, "x_categories"))
    return arrays, flat.graphs()[0], nodes, edges, flat.share_reversed < 1


def graph_from_npz(path: str | Path, needs: Sequence[Need] = ()) -> tuple[Data, np.ndarray | None]:
    """The graph alone, to predict for, and the array ``pairs`` [k, 2] where there is one. ``needs``: of ``graphs_from_npz``."""
    arrays, graph, *_ = _read(Path(path), needs)
    return graph, arrays.get("pairs")


def nodes_from_npz(path: str | Path, *, metric: Metric | None = None, fold: int = 0) -> OneGraph:
    """Labels of nodes, from a file of arrays laid out as PyG's Planetoid datasets are.

    ================== ============= ====================================================================
    ``edge_index``     ``[2, M]``    source and target; each edge once, or all in both directions
    ``x``              ``[N, C]``    features: integers are categories, floats are numbers
    ``edge_attr``      ``[M, D]``    optional, like ``x``
    ``y``              ``[N]``       integers: classes; floats: numbers to predict; or ``[N, T]``: yes/no tasks, or
                                     numbers where ``metric`` is "mae", "mse" or "r2"; NaN: not measured
    ``train_mask``     ``[N]``       bool, with ``val_mask`` and ``test_mask``; or ``[N, K]``, of which ``fold``
                                     is the column
    ================== ============= ====================================================================
    """
    path = Path(path)
    arrays, graph, channels, edges, directed = _read(path)
    for name in ("y", *MASKS.values()):
        if name not in arrays:
            raise ValueError(f"{path}: Expected an array {name!r} for labels of nodes, got only {sorted(arrays)}")
        if len(arrays[name]) != graph.num_nodes:
            raise ValueError(
                f"{path}: Expected {name} to have a row for each of {graph.num_nodes} nodes, got {len(arrays[name])}"
            )
    parts = {part: _nodes_of(path, name, arrays[name], fold) for part, name in MASKS.items()}
    both = np.intersect1d(parts["train"], np.concatenate([parts["valid"], parts["test"]]))
    if len(both):
        raise ValueError(f"{path}: Expected masks that have no node in common, got node {both[0]} to train and to test on")
    y, inside = arrays["y"], np.isin(np.arange(graph.num_nodes or 0), np.concatenate(list(parts.values())))
    if y.ndim == 1 and y.dtype.kind in "iu" and inside.any():
        if y[inside].min() < 0:
            raise ValueError(f"{path}: Expected classes from 0 on where a mask is set, got {y[inside].min()}")
        y = np.where(inside, y, y[inside][0])  # whatever stands for "not known" elsewhere is no class
    task, labels, outputs = labels_from(str(path), y, None, metric in REGRESSION)
    folds = arrays["train_mask"].reshape(len(y), -1).shape[1]
    return OneGraph(
        path.stem, graph, "nodes", task, metric or METRICS[task], outputs, channels, edges, torch.from_numpy(labels), parts,
        num_folds=folds, directed=directed,
    )  # fmt: skip


def _nodes_of(path: Path, name: str, mask: np.ndarray, fold: int) -> np.ndarray:
    if mask.dtype.kind != "b" or mask.ndim not in (1, 2):
        raise ValueError(f"{path}: Expected {name} to be a mask, got {mask.dtype} of shape {list(mask.shape)}")
    columns = mask.reshape(len(mask), -1)
    if not 0 <= fold < columns.shape[1]:
        raise ValueError(f"{path} has folds 0 to {columns.shape[1] - 1}, got fold {fold}")
    return np.flatnonzero(columns[:, fold])


def links_from_npz(path: str | Path, *, metric: Metric | None = None, seed: int = 0) -> OneGraph:
    """Pairs of nodes: is there an edge? The file is that of :func:`nodes_from_npz`, of which labels and masks are not read.

    A tenth of the undirected edges is to be tested, a twentieth to validate; the graph that models see has the others only.
    Every part has as many pairs that are no edge, drawn uniformly, each pair once. What is drawn depends on ``seed`` alone.
    """
    path = Path(path)
    _, graph, channels, edges, directed = _read(path)
    ends = graph.edge_index.numpy()
    nodes = int(graph.num_nodes or 0)
    key = ends.min(axis=0) * nodes + ends.max(axis=0)
    known = np.unique(key[ends[0] != ends[1]])
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(known))
    sizes = [int(np.ceil(share * len(known))) for share in SHARES.values()]
    chosen = dict(zip((*SHARES, "train"), np.split(known[order], np.cumsum(sizes))))
    there = np.isin(key, chosen["train"]) | (ends[0] == ends[1])
    seen = Data(x=graph.x, edge_index=torch.from_numpy(ends[:, there]))
    if graph.edge_attr is not None:
        seen.edge_attr = graph.edge_attr[torch.from_numpy(there)]
    none = iter(np.split(_no_edges(path, nodes, known, rng), np.cumsum([len(v) for v in chosen.values()])))
    keys, labels, parts = [], [], {}
    for part, positive in chosen.items():
        keys += [positive, next(none)]
        labels += [np.ones(len(positive)), np.zeros(len(positive))]
        end = sum(map(len, keys))
        parts[part] = np.arange(end - 2 * len(positive), end)
    joined = np.concatenate(keys)
    y = torch.from_numpy(np.concatenate(labels).astype(np.float32))[:, None]
    pairs = np.stack([joined // nodes, joined % nodes], axis=1)
    return OneGraph(path.stem, seen, "links", "binary", metric or "rocauc", 1, channels, edges, y, parts, pairs, 1, directed)


def _no_edges(path: Path, nodes: int, known: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """As many pairs u < v as there are edges, none of them an edge, each once."""
    wanted, free = len(known), nodes * (nodes - 1) // 2 - len(known)
    if free < wanted:
        raise ValueError(f"{path}: Expected at least {wanted} pairs of nodes without an edge, one for each edge, got {free}")
    if free < 4 * wanted:
        low, high = np.triu_indices(nodes, 1)
        return rng.choice(np.setdiff1d(low * nodes + high, known), wanted, replace=False)
    found: Any = np.zeros(0, np.int64)
    while len(found) < wanted:
        drawn = rng.integers(0, nodes, (2 * wanted, 2))
        new = drawn.min(axis=1) * nodes + drawn.max(axis=1)
        new = np.concatenate([found, new[(drawn[:, 0] != drawn[:, 1]) & ~np.isin(new, known)]])
        _, first = np.unique(new, return_index=True)
        found = new[np.sort(first)]  # in the order drawn: cutting off the rest favours none
    return found[:wanted]
