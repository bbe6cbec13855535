"""Writing graphs as one ``.npz`` file, as ``from_npz`` reads it."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from torch_geometric.data import Data

from enfa.atomic import write_atomically
from enfa.datasets.benchmark import Level, Metric
from enfa.datasets.npz.read import seen
from enfa.datasets.own.graphs import check_alike, from_arrays, join_labels, joined

__all__ = ["to_npz"]


def to_npz(
    graphs: Sequence[Data],
    path: str | Path,
    *,
    in_channels: Sequence[int] | None = None,
    edge_channels: Sequence[int] | None = None,
    splits: Mapping[str, np.ndarray] | None = None,
    level: Level = "graph",
    metric: Metric | None = None,
    targets: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    edges: Literal["auto", "once", "both"] = "both",
    force: bool = False,
) -> None:
    """Write graphs with ``edge_index``, and maybe ``x``, ``edge_attr`` and ``y``, as a file that ``from_npz`` reads: the same
    graphs with the same labels. Without ``y`` it is one to predict for.

    ``in_channels`` and ``edge_channels`` are how many categories each column of ``x`` and ``edge_attr`` has, where other data
    may hold more than these graphs do. With ``level="node"`` labels are those of nodes. ``metric`` is what to score by, where
    labels do not say it; ``targets`` names the columns of ``y``, ``classes`` the classes. ``edges``
    says whether the graphs have both directions of every edge or directed ones ("both"), or each edge once, to be read with its
    reverse ("once"); "auto" sees which. An existing file is replaced only
    with ``force``; the new one appears complete or not at all.
    """
    path, graphs = Path(path), list(graphs)
    if path.suffix != ".npz":
        raise ValueError(f"Expected a file ending in .npz to write, got {path}")
    if path.exists() and not force:
        raise ValueError(f"{path} exists: --force (in Python, force=True) replaces it")
    if not graphs:
        raise ValueError(f"Expected at least one graph to write into {path}, got none")
    check_alike("to_npz", graphs, y=graphs[0].get("y") is not None)
    flat = joined("to_npz", graphs)
    arrays = {"num_nodes": flat.num_nodes, "num_edges": flat.num_edges, "edges": flat.edges}
    arrays["directions"] = np.array(seen(flat) if edges == "auto" else edges)
    if graphs[0].x is not None:
        arrays["x"] = flat.x
    if flat.edge_attr is not None:
        arrays["edge_attr"] = flat.edge_attr
    if graphs[0].get("y") is not None:
        arrays["y" if level == "graph" else "node_y"] = join_labels("to_npz", graphs, level)
    elif metric is not None:
        raise ValueError(f"Expected labels, which a metric is of, got metric={metric!r} and graphs without y")
    for key, given in (("x_categories", in_channels), ("edge_categories", edge_channels)):
        if given is not None:
            arrays[key] = np.array(list(given), dtype=np.int64)
    for key, names in (("metric", metric), ("targets", targets), ("classes", classes)):
        if names is not None:
            arrays[key] = np.array(names if isinstance(names, str) else list(names))
    for part, positions in (splits or {}).items():
        arrays[f"split_{part}"] = np.asarray(positions)
    if graphs[0].get("y") is not None:
        from_arrays(path, arrays)  # refuses what could not be read again
    path.parent.mkdir(parents=True, exist_ok=True)
    file = io.BytesIO()
    np.savez_compressed(file, **{key: _small(value) for key, value in arrays.items()})  # type: ignore[arg-type]
    write_atomically(path, [file.getbuffer()])


def _small(values: np.ndarray) -> np.ndarray:
    """Integers in the smallest type that holds them: all are read as int64."""
    if values.dtype.kind not in "iu" or not values.size:
        return values
    low, high = int(values.min()), int(values.max())
    return values.astype(np.promote_types(np.min_scalar_type(low), np.min_scalar_type(high)))
