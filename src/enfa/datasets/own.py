"""Your own data: from a list of graphs, or from one ``.npz`` file."""

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch_geometric.data import Data

from enfa.datasets.assemble import assemble
from enfa.datasets.benchmark import Benchmark, Channels, Metric
from enfa.datasets.flat import FlatGraphs

__all__ = ["from_graphs", "from_npz", "graphs_from_npz"]


def from_graphs(
    graphs: Sequence[Data],
    *,
    name: str = "graphs",
    metric: Metric | None = None,
    num_outputs: int | None = None,
    in_channels: Channels | Sequence[int] | None = None,
    edge_channels: Channels | Sequence[int] | None = None,
    splits: Mapping[str, np.ndarray] | None = None,
) -> Benchmark:
    """A benchmark from graphs with ``edge_index`` and ``y``, and maybe ``x`` and ``edge_attr``.

    Integer ``x`` and ``edge_attr`` are categories, float ones are numbers. A graph's ``y`` is an integer (a
    class), or a row ``[1, T]`` (yes/no tasks, NaN where not measured). What is not given is read off the
    data; pass ``num_outputs``, ``in_channels`` and ``edge_channels`` where other data may hold more classes
    or categories than these graphs do. The arrays are copied; other attributes of the graphs are left behind.
    """
    graphs = list(graphs)
    if not graphs:
        raise ValueError(f"{name}: expected at least one graph, got none")
    for key, needed in (("edge_index", True), ("y", True), ("x", False), ("edge_attr", False)):
        have = [graph.get(key) is not None for graph in graphs]
        if not all(have) and (needed or any(have)):
            raise ValueError(f"{name}: graph {have.index(False)} has no {key}")
    num_nodes = np.array([graph.num_nodes for graph in graphs])
    flat = FlatGraphs(
        source=name,
        num_nodes=num_nodes,
        num_edges=np.array([graph.edge_index.size(1) for graph in graphs]),
        edges=_join(name, graphs, "edge_index", dim=1).T,
        x=np.zeros(num_nodes.sum(), dtype=np.int64) if graphs[0].x is None else _join(name, graphs, "x"),
        edge_attr=None if graphs[0].edge_attr is None else _join(name, graphs, "edge_attr"),
    )
    return assemble(
        name,
        flat,
        _join(name, graphs, "y"),
        metric=metric,
        num_outputs=num_outputs,
        in_channels=in_channels,
        edge_channels=edge_channels,
        splits=splits,
    )


def from_npz(
    path: str | Path,
    *,
    name: str | None = None,
    metric: Metric | None = None,
    num_outputs: int | None = None,
    in_channels: Channels | Sequence[int] | None = None,
    edge_channels: Channels | Sequence[int] | None = None,
    edges: Literal["auto", "once", "both"] = "auto",
    use_node_attr: bool = False,
) -> Benchmark:
    """A benchmark from one file of arrays, all graphs laid end to end; any integer or float type will do.

    ================== ============= ====================================================================
    ``num_nodes``      ``[G]``       nodes of each graph, adding up to N
    ``num_edges``      ``[G]``       rows of ``edges`` of each graph, adding up to M
    ``edges``          ``[M, 2]``    source and target, counted from 0 in each graph
    ``x``              ``[N, C]``    features: integers are categories, floats are numbers; or instead of it
    ``node_label``     ``[N]``       one categorical column; with neither, all nodes are alike
    ``node_attr``      ``[N, A]``    optional numbers: ``use_node_attr`` puts them before the labels one-hot
    ``edge_attr``      ``[M, D]``    optional, like ``x``
    ``y``              ``[G]``       integers: classes; or ``[G, T]``: yes/no tasks, NaN where not measured
    ``split_train``    ``[...]``     optional positions of graphs, with ``split_valid`` (or ``split_val``)
                                     and ``split_test``; without them, ten stratified folds
    ================== ============= ====================================================================

    ``edges="both"`` takes the edges as they stand, for files with both directions of every edge (or directed
    graphs); ``"once"`` adds the reverse of each; ``"auto"`` sees which of the two it is. The other options
    are those of ``from_graphs``. Nothing in the file is unpickled.
    """
    path = Path(path)
    arrays = _read(path)
    return assemble(
        name or path.stem,
        _flat(path, arrays, edges, use_node_attr),
        arrays["y"],
        metric=metric,
        num_outputs=num_outputs,
        in_channels=in_channels,
        edge_channels=edge_channels,
        splits=_splits(arrays),
    )


def graphs_from_npz(
    path: str | Path, *, edges: Literal["auto", "once", "both"] = "auto", use_node_attr: bool = False
) -> list[Data]:
    """The graphs of a file as ``from_npz`` takes it, for prediction: ``y`` may be missing, and is left behind."""
    path = Path(path)
    arrays = _read(path, labels=False)
    flat = _flat(path, arrays, edges, use_node_attr)
    graphs = flat.graphs(torch.zeros(len(flat.num_nodes), dtype=torch.int64))
    for graph in graphs:
        del graph.y
    return graphs


def _flat(path: Path, arrays: Mapping[str, np.ndarray], edges: str, use_node_attr: bool) -> FlatGraphs:
    if edges not in ("auto", "once", "both"):
        raise ValueError(f"Expected edges to be 'auto', 'once' or 'both', got {edges!r}")
    flat = FlatGraphs(
        source=str(path),
        num_nodes=arrays["num_nodes"],
        num_edges=arrays["num_edges"],
        edges=arrays["edges"],
        x=_features(path, arrays, use_node_attr),
        edge_attr=arrays.get("edge_attr"),
    )
    if edges == "auto":
        share = flat.share_reversed()
        if share not in (0.0, 1.0):
            raise ValueError(
                f"{path}: {share:.0%} of the edges stand in both directions, which is neither all nor none; "
                f"say edges='both' to take them as they are, or edges='once' to add every reverse"
            )
        edges = "both" if share == 1.0 else "once"
    return flat.with_reversed() if edges == "once" else flat


def _join(name: str, graphs: Sequence[Data], key: str, dim: int = 0) -> np.ndarray:
    try:
        values = [torch.atleast_1d(torch.as_tensor(graph[key])) for graph in graphs]
        return torch.cat(values, dim=dim).detach().cpu().numpy()
    except (RuntimeError, IndexError) as error:
        raise ValueError(f"{name}: the graphs' {key} do not fit together ({error})") from error


def _read(path: Path, labels: bool = True) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, TypeError) as error:
        raise ValueError(f"{path} is cut short, or is no .npz file of plain arrays ({error})") from error
    for key in ("num_nodes", "num_edges", "edges", *(["y"] if labels else [])):
        if key not in arrays:
            raise ValueError(f"{path}: expected an array {key!r}, got only {sorted(arrays)}")
    return arrays


def _features(path: Path, arrays: Mapping[str, np.ndarray], use_node_attr: bool) -> np.ndarray:
    labels = arrays.get("node_label")
    if not use_node_attr:
        alike = np.zeros(int(arrays["num_nodes"].sum()), dtype=np.int64)
        return arrays.get("x", alike if labels is None else labels)
    if "node_attr" not in arrays or "x" in arrays:
        raise ValueError(f"{path}: node attributes need an array 'node_attr' and no array 'x'")
    attr = arrays["node_attr"].reshape(len(arrays["node_attr"]), -1).astype(np.float32)
    if labels is None:
        return attr
    one_hot = (labels[:, None] == np.arange(labels.max(initial=0) + 1)).astype(np.float32)
    if len(one_hot) != len(attr):
        raise ValueError(f"{path}: node_attr has {len(attr)} rows, node_label {len(one_hot)}")
    return np.concatenate([attr, one_hot], axis=1)


def _splits(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray] | None:
    there = {key.removeprefix("split_"): value for key, value in arrays.items() if key.startswith("split_")}
    if "val" in there:
        there["valid"] = there.pop("val")
    return there or None
