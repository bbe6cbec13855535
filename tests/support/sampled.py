"""A few graphs of a large file, without making all of them."""

from pathlib import Path

import numpy as np


def sample_npz(path: Path, graphs: np.ndarray, out: Path) -> Path:
    """Write some graphs of a file in the format of ``enfa.datasets.from_npz`` to another, without its splits."""
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files if not key.startswith("split_")}
    counts = {len(arrays["num_nodes"]): np.ones(len(arrays["num_nodes"]), np.int64)}
    counts |= {int(arrays[key].sum()): arrays[key].astype(np.int64) for key in ("num_nodes", "num_edges")}
    chosen = np.isin(np.arange(len(arrays["num_nodes"])), graphs)
    np.savez(out, **{key: value[np.repeat(chosen, counts[len(value)])] for key, value in arrays.items()})
    return out
