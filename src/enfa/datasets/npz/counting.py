"""Substructure counting: 5,000 random graphs (Chen et al., "Can graph neural networks count substructures?", NeurIPS 2020)."""

from pathlib import Path

import numpy as np

from enfa.datasets.assemble import assemble
from enfa.datasets.benchmark import Benchmark
from enfa.datasets.known import elsewhere
from enfa.datasets.npz.read import directions, flat_graphs, read_npz, splits_of
from enfa.datasets.npz.substructures import PATTERNS, count_patterns, stars

__all__ = ["load_counting"]

SIZES = (1_500, 1_000, 2_500)
CYCLES = ("cycle3", "cycle4", "cycle5", "cycle6")
# How many of a pattern's nodes are in the place that counts.
PLACES = np.array([3, 4, 5, 6, 1, 2, 4])


def load_counting(name: str, path: Path) -> Benchmark:
    """Cycles of 3 to 6 nodes, tailed triangles, chordal cycles and 4-cliques; the metric is the mean absolute error.

    ``"counting"``: how many each *node* is in, as I²-GNN is tested; targets are standardised by mean and deviation over the
    nodes of the training and validation graphs, as its authors do. ``"counting-graphs"``: how many each *graph* has, and
    3-stars, as GNN-AK, SUN and GNN-SSWL+ are tested; targets are divided by their deviation over all graphs, as their authors
    do. So errors are in deviations: the normalised error of the papers. One model is trained for each target
    (``Benchmark.only``).
    """
    if not path.is_file():
        raise FileNotFoundError(f"{name} needs {path}: not there. {elsewhere(name, path.parent)}")
    arrays = read_npz(path, ("node_cycles_3_4_5_6",))
    flat, splits = flat_graphs(path, arrays, directions(path, arrays)), splits_of(arrays) or {}
    found = tuple(len(splits.get(part, ())) for part in ("train", "valid", "test"))
    if found != SIZES:
        raise ValueError(f"{path}: {name} has {SIZES} graphs in train, valid and test, got {found}; is the file cut short?")
    cycles = arrays["node_cycles_3_4_5_6"]
    if cycles.shape != (len(flat.x), 4):
        raise ValueError(f"{path}: expected counts of shape {(len(flat.x), 4)}, got {cycles.shape}; is the file cut short?")
    counts = np.concatenate([cycles, count_patterns(flat)], 1).astype(np.float64)
    targets: tuple[str, ...] = (*CYCLES, *PATTERNS)
    graph = np.repeat(np.arange(len(flat.num_nodes)), flat.num_nodes)
    if name == "counting":
        known = counts[np.isin(graph, np.concatenate([splits["train"], splits["valid"]]))]
        mean, std = known.mean(0), known.std(0, ddof=1)
    else:
        counts, targets = np.column_stack([counts / PLACES, stars(flat)]), (*targets, "star3")
        every = [np.bincount(graph, column, len(flat.num_nodes)).round() for column in counts.T]
        counts = np.stack(every, 1).astype(np.float64)
        mean, std = np.zeros(len(targets)), counts.std(0, ddof=1)
    return assemble(
        name, flat, counts, metric="mae", in_channels=[1], splits=splits, level="node" if name == "counting" else "graph",
        targets=targets, mean=mean, std=std,
    )  # fmt: skip
