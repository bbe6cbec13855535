"""SR25: the fifteen strongly regular graphs with parameters (25, 12, 5, 6), which 3-WL cannot tell apart."""

from pathlib import Path

import numpy as np

from enfa.datasets.assemble import assemble
from enfa.datasets.benchmark import Benchmark
from enfa.datasets.flat import FlatGraphs
from enfa.datasets.known import elsewhere
from enfa.datasets.npz.read import directions, flat_graphs, read_npz

__all__ = ["load_sr25", "read_graph6"]

RAW = Path("SR25") / "raw" / "sr251256.g6"


def load_sr25(path: Path) -> Benchmark:
    """Fifteen graphs, each a class of its own: the accuracy of a model that was trained on them, as GNN-AK and others test it.

    From the file, or from ``SR25/raw/sr251256.g6`` beside it. That they are what they should be is checked.
    """
    raw = path.parent / RAW
    if path.is_file():
        arrays = read_npz(path, ())
        flat = flat_graphs(path, arrays, directions(path, arrays))
    elif raw.is_file():
        flat = read_graph6(raw)
    else:
        raise FileNotFoundError(f"SR25 needs {path} or {raw}: neither is there. {elsewhere('SR25', path.parent)}")
    _check(flat)
    same = np.arange(15)
    splits = {"train": same, "valid": same, "test": same}
    return assemble("SR25", flat, same, num_outputs=15, in_channels=[1], splits=splits, refit=True)


def read_graph6(path: Path) -> FlatGraphs:
    """Graphs of at most 62 nodes, one a line, in the format of McKay's nauty."""
    sizes, edges = [], []
    for line in path.read_text(encoding="ascii").split():
        codes = np.frombuffer(line.encode(), np.uint8).astype(np.int64) - 63
        n = int(codes[0])
        pairs = n * (n - 1) // 2
        if codes.min() < 0 or codes.max() > 63 or n > 62 or len(codes) != 1 + -(-pairs // 6):
            raise ValueError(f"{path}: expected graphs of at most 62 nodes in graph6 format, got {line[:20]!r}")
        bits = (codes[1:, None] >> np.arange(5, -1, -1)) & 1
        high, low = np.tril_indices(n, -1)  # column by column of the upper triangle
        edges.append(np.stack([low, high], 1)[bits.ravel()[:pairs] == 1])
        sizes.append(n)
    counts = np.array([len(e) for e in edges], dtype=np.int64)
    every = np.concatenate([np.zeros((0, 2), np.int64), *edges])
    flat = FlatGraphs(str(path), np.array(sizes, dtype=np.int64), counts, every, np.zeros(sum(sizes), dtype=np.int64))
    return flat.with_reversed()


def _check(flat: FlatGraphs) -> None:
    """A copy of these graphs that is in use lacks two edges."""
    if flat.num_nodes.tolist() != [25] * 15:
        raise ValueError(f"{flat.source}: expected 15 graphs of 25 nodes, got {flat.num_nodes.tolist()}")
    a = np.zeros((15, 25, 25), dtype=np.int64)
    a[np.repeat(np.arange(15), flat.num_edges), flat.edges[:, 0], flat.edges[:, 1]] = 1
    expected = 12 * np.eye(25, dtype=np.int64) + 5 * a + 6 * (1 - a - np.eye(25, dtype=np.int64))
    wrong = (a @ a != expected).any((1, 2))
    if wrong.any():
        raise ValueError(f"{flat.source}: graph {int(np.argmax(wrong))} is not strongly regular; is the file damaged?")
