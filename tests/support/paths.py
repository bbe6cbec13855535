"""A dataset that is trained in no time."""

from pathlib import Path

import numpy as np

__all__ = ["paths_in"]


def paths_in(folder: Path) -> Path:
    """A file of 40 paths of three nodes, of two classes."""
    file, arrays = folder / "paths.npz", {"num_nodes": [3] * 40, "num_edges": [2] * 40, "edges": [[0, 1], [1, 2]] * 40}
    np.savez(file, y=np.array([0, 1] * 20), **{name: np.array(value) for name, value in arrays.items()})  # type: ignore[arg-type]
    return file
