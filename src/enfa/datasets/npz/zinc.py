"""ZINC: molecules and their penalised logP, in the two sizes that the field uses."""

from pathlib import Path

import numpy as np

from enfa.datasets.assemble import assemble
from enfa.datasets.benchmark import Benchmark
from enfa.datasets.flat import FlatGraphs
from enfa.datasets.known import elsewhere
from enfa.datasets.npz.read import directions, flat_graphs, read_npz, splits_of

__all__ = ["load_zinc", "zinc_arrays"]

# Name -> which arrays hold its split, and how many graphs each part has.
SIZES = {"ZINC": ("split_", (10_000, 1_000, 1_000)), "ZINC-full": ("full_", (220_011, 24_445, 5_000))}
ATOMS, BONDS = 28, 4  # atom types, and bond types: 0 is none, which stands at no edge


def zinc_arrays(name: str, path: Path, both: bool = True) -> tuple[FlatGraphs, np.ndarray]:
    """The graphs of the official split, in its order: train, then valid, then test; and their labels [G, 1].

    ``both``: with every edge in both directions; else as the file has them, which is once where it does not say otherwise.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"{name} needs {path}: not there. Its official files are pickles, which could run any code and are never read: "
            f"load them with torch_geometric.datasets.ZINC where you trust them, and write its graphs with enfa.datasets."
            f"to_npz(graphs, '{path}', metric='mae', in_channels=[{ATOMS}], edge_channels=[{BONDS}], splits=...), "
            f"or give them to from_graphs. {elsewhere(name, path.parent)}"
        )
    arrays = read_npz(path)
    prefix, sizes = SIZES[name]
    splits = splits_of(arrays, prefix) or {}
    found = tuple(len(splits.get(part, ())) for part in ("train", "valid", "test"))
    if found != sizes:
        raise ValueError(f"{path}: {name} has {sizes} graphs in train, valid and test, got {found}; is the file cut short?")
    chosen = np.concatenate([splits[part].astype(np.int64) for part in ("train", "valid", "test")])
    if chosen.min() < 0 or chosen.max() >= len(arrays["y"]):
        raise ValueError(f"{path}: expected splits to hold positions below {len(arrays['y'])}, got {chosen.max()}")
    flat = flat_graphs(path, arrays, "both").subset(chosen)
    return flat.with_reversed() if both and directions(path, arrays) == "once" else flat, arrays["y"][chosen]


def load_zinc(name: str, path: Path) -> Benchmark:
    """ZINC-12k ("ZINC", the subset of "Benchmarking GNNs") or all of it, from one file; the metric is the mean absolute error.

    The graphs are those of the official split, in its order: train, then valid, then test.
    """
    flat, y = zinc_arrays(name, path)
    ends = np.cumsum(SIZES[name][1])
    return assemble(
        name,
        flat,
        y,
        metric="mae",
        num_outputs=1,
        in_channels=[ATOMS],
        edge_channels=[BONDS],
        splits=dict(zip(("train", "valid", "test"), np.split(np.arange(ends[-1]), ends[:-1]))),
    )
