"""The TU Dortmund collection, PROTEINS among it, by PyG's reader of the raw text files."""

from pathlib import Path

import numpy as np
import torch
from torch_geometric.io import read_tu_data

from enfa.datasets.assemble import assemble
from enfa.datasets.benchmark import Benchmark
from enfa.datasets.flat import FlatGraphs
from enfa.datasets.official.fetch import ensure_tu

__all__ = ["load_tu"]

# Graphs, nodes, directed edges. An edge list has no count of its own that would tell when it is cut short.
KNOWN_SIZES = {"PROTEINS": (1113, 43471, 162088)}


def load_tu(name: str, root: Path, use_node_attr: bool) -> Benchmark:
    """One dataset of the collection: node labels as categorical columns, stratified ten-fold accuracy.

    Self-loops and repeated edges are dropped, as PyG does. Edge labels become categorical edge attributes;
    edge attributes are left out. Graphs without node labels get one category for all nodes. With
    ``use_node_attr``, ``x`` is float: the attributes, then the labels one-hot, as PyG lays them out.

    PyG's own ``TUDataset`` reads the same files but keeps a pickle of them, which is why it is not used.
    """
    folder = ensure_tu(name, root)
    for path in sorted(folder.glob(f"{name}_*.txt")):
        _check_ending(path)
    try:
        data, slices, sizes = read_tu_data(str(folder), name)
    except (ValueError, IndexError, RuntimeError, TypeError) as error:
        raise ValueError(f"{folder}: the files do not fit together; is one cut short? ({error})") from error
    if data.y.is_floating_point():
        raise ValueError(f"{name} has real-valued targets; only classification is supported")
    if data.y.dim() != 1:
        raise ValueError(f"{name} has {data.y.size(1)} labels for each graph; only one is supported")

    num_nodes = np.diff(slices["x"]) if "x" in slices else np.asarray(data._num_nodes)
    num_edges = np.diff(slices["edge_index"])
    # PyG's slices stop at the last graph that has an edge.
    num_edges = np.pad(num_edges, (0, len(num_nodes) - len(num_edges)))
    sizes_read = (len(num_nodes), int(num_nodes.sum()), int(num_edges.sum()))
    if sizes_read != KNOWN_SIZES.get(name, sizes_read):
        raise ValueError(
            f"{folder}: {name} has %d graphs, %d nodes and %d edges, got %d, %d and %d; is a file cut short?"
            % (*KNOWN_SIZES[name], *sizes_read)
        )
    if use_node_attr and not sizes["num_node_attributes"]:
        raise ValueError(f"{name} has no node attributes")
    node_labels, node_kinds = _categories(data.x, sizes["num_node_attributes"], int(num_nodes.sum()))
    edge_labels, edge_kinds = _categories(data.edge_attr, sizes["num_edge_attributes"], int(num_edges.sum()))
    flat = FlatGraphs(
        source=str(folder),
        num_nodes=num_nodes,
        num_edges=num_edges,
        edges=data.edge_index.t().numpy(),
        x=data.x.numpy() if use_node_attr else node_labels,
        edge_attr=edge_labels if sizes["num_edge_labels"] else None,
    )
    return assemble(
        name,
        flat,
        data.y.numpy(),
        in_channels=None if use_node_attr else node_kinds,
        edge_channels=edge_kinds,
    )


def _categories(columns: torch.Tensor | None, skip: int, rows: int) -> tuple[np.ndarray, list[int]]:
    """Undo PyG's one-hot encoding of one or more label columns, which follows ``skip`` attribute columns.

    Labels count from 0 in every column, so a column's block begins at the least position taken in it.
    """
    if columns is None or columns.size(1) == skip:
        return np.zeros((rows, 1), dtype=np.int64), [1]
    hot = columns[:, skip:]
    taken = hot.nonzero()[:, 1].reshape(len(hot), -1)  # [rows, number of label columns]
    begin = taken.min(dim=0).values
    kinds = torch.diff(begin, append=torch.tensor([hot.size(1)]))
    return (taken - begin).numpy(), kinds.tolist()


def _check_ending(path: Path) -> None:
    # PyG's reader drops what follows the last newline, so half a line would vanish silently.
    with path.open("rb") as file:
        file.seek(0, 2)
        if file.tell():
            file.seek(-1, 2)
        if file.read(1) != b"\n":
            raise ValueError(f"{path} does not end with a newline; is it cut short?")
