"""peptides-func of the Long Range Graph Benchmark, from the files that PyG's ``LRGBDataset`` downloads."""

import pickle
from pathlib import Path

import numpy as np
import torch
from torch_geometric.datasets import LRGBDataset

from enfa.datasets.assemble import assemble
from enfa.datasets.benchmark import Benchmark
from enfa.datasets.flat import FlatGraphs
from enfa.datasets.molecules import ATOM_CHANNELS, BOND_CHANNELS
from enfa.datasets.official.fetch import ensure_files

__all__ = ["load_peptides_func"]

NAME = "peptides-func"
PARTS = {"train": "train", "valid": "val", "test": "test"}


def load_peptides_func(root: Path) -> Benchmark:
    """The official split, in whose order the graphs stand: train, then valid, then test. Average precision.

    The files are lists of tensors ``(x, edge_attr, edge_index, y)``; they are read with
    ``weights_only=True``, which runs no code from the file.
    """
    folder = root / NAME / "raw"
    ensure_files(NAME, folder, [f"{part}.pt" for part in PARTS.values()], LRGBDataset.urls[NAME])
    parts = [_read(folder / f"{part}.pt") for part in PARTS.values()]
    begin = np.cumsum([0, *map(len, parts)])
    x, edge_attr, edge_index, y = zip(*(graph for part in parts for graph in part))
    flat = FlatGraphs(
        source=str(folder),
        num_nodes=np.array([len(v) for v in x]),
        num_edges=np.array([v.shape[-1] for v in edge_index]),
        edges=torch.cat(edge_index, dim=1).t().numpy(),
        x=torch.cat(x).numpy(),
        edge_attr=torch.cat(edge_attr).numpy(),
    )
    return assemble(
        NAME,
        flat,
        torch.cat(y).numpy(),
        metric="ap",
        num_outputs=10,
        in_channels=ATOM_CHANNELS,
        edge_channels=BOND_CHANNELS,
        splits={part: np.arange(begin[i], begin[i + 1]) for i, part in enumerate(PARTS)},
    )


def _read(path: Path) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]]:
    try:
        graphs = torch.load(path, weights_only=True)
    except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise ValueError(f"{path} is cut short, or holds more than tensors ({error})") from error
    shaped = isinstance(graphs, list) and all(
        isinstance(graph, tuple) and len(graph) == 4 and all(isinstance(v, torch.Tensor) for v in graph) for graph in graphs
    )
    if not shaped:
        raise ValueError(f"{path}: expected a list of (x, edge_attr, edge_index, y), got something else")
    return graphs
