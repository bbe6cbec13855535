"""The arrays of an ``.npz`` file, as :func:`enfa.datasets.from_npz` describes them."""

import difflib
import zipfile
import zlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from enfa.datasets.flat import FlatGraphs

__all__ = [
    "EITHER", "KNOWN", "Need", "check_names", "check_needs", "directions", "flat_graphs", "named", "read_npz", "seen",
    "splits_of", "stored",
]  # fmt: skip


def read_npz(path: Path, also: Sequence[str] = ("y",), graphs: bool = True) -> dict[str, np.ndarray]:
    """All arrays of a file, which must hold those of the graphs (if ``graphs``), and ``also``. Nothing is unpickled."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, TypeError) as error:
        reason = "it holds pickled objects, or is a file of another kind" if "pickle" in str(error) else str(error)
        raise ValueError(f"{path} is cut short, or is no .npz file of plain arrays ({reason})") from error
    for key in (*(("num_nodes", "num_edges", "edges") if graphs else ()), *also):
        if key not in arrays:
            one = "; a file of one graph is for --task nodes, or links" if graphs and "edge_index" in arrays else ""
            raise ValueError(f"{path}: expected an array {key!r}, got only {sorted(arrays)}{one}")
    return arrays


KNOWN = {
    "num_nodes", "num_edges", "edges", "x", "node_label", "node_attr", "edge_attr", "y", "node_y", "split_train", "split_valid",
    "split_val", "split_test", "x_categories", "edge_categories", "directions", "metric", "targets", "classes",
}  # fmt: skip


_OTHERS = {"categories"}  # of BREC's pairs
Need = Literal["features", "directions"]
EITHER = "say edges='both' to take them as they are, or edges='once' to add every reverse"


def check_needs(path: Path, arrays: Mapping[str, np.ndarray], needs: Sequence[Need]) -> None:
    """Refuse a file that leaves open what a model has learnt from."""
    if "features" in needs and not arrays.keys() & {"x", "node_label", "node_attr"}:
        raise ValueError(f"{path}: expected features of nodes, an array 'x' or 'node_label', got only {sorted(arrays)}")
    if "directions" in needs and "directions" not in arrays:
        raise ValueError(
            f"{path}: expected an array 'directions', because the model was trained on directed edges: 'both' takes edges as "
            f"they stand, 'once' adds the reverse of each; got only {sorted(arrays)}"
        )


def check_names(path: Path, arrays: Mapping[str, np.ndarray], known: Collection[str] = KNOWN) -> None:
    """Refuse arrays that would be left unread by mistake: others than these are left alone, but not what looks like one that
    is not there."""
    absent = sorted(set(known) - arrays.keys() - {"targets", "classes"})  # which are names only
    for key in sorted(arrays.keys() - set(known) - _OTHERS):
        if key.startswith("split_"):
            continue  # which parts there are is checked where they are read
        close = difflib.get_close_matches(key.lower(), absent, n=1, cutoff=0.9)
        if close:
            raise ValueError(f"{path}: expected an array {close[0]!r}, got {key!r}, which nothing reads")
        if key in ("edge_weight", "x_cat"):
            raise ValueError(f"{path}: expected no array {key!r}, which files of graphs have no place for, got one")
    for one, other in (("x", "node_label"), ("split_val", "split_valid")):
        if one in arrays and other in arrays:
            raise ValueError(f"{path}: expected an array {one!r} or {other!r}, got both")


def flat_graphs(path: Path, arrays: Mapping[str, np.ndarray], edges: str = "auto", use_node_attr: bool = False) -> FlatGraphs:
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
    if edges == "auto" and "directions" in arrays:
        edges = directions(path, arrays)
    if edges == "auto":
        edges = seen(flat)
    return flat.with_reversed() if edges == "once" else flat


def directions(path: Path, arrays: Mapping[str, np.ndarray]) -> str:
    """Of a benchmark's file, which has each edge "once" unless it says that it has "both" directions, as ``to_npz`` does."""
    found = str(arrays.get("directions", "once"))
    if found not in ("once", "both"):
        raise ValueError(f"{path}: expected directions to be 'once' or 'both', got {found!r}")
    return found


def seen(flat: FlatGraphs) -> Literal["once", "both"]:
    """Whether graphs have both directions of every edge ("both") or each edge "once"."""
    share = flat.share_reversed
    if share not in (0.0, 1.0):
        raise ValueError(
            f"{flat.source}: {share:.0%} of the edges stand in both directions, which is neither all nor none; {EITHER}"
        )
    return "both" if share == 1.0 else "once"


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


def splits_of(arrays: Mapping[str, np.ndarray], prefix: str = "split_") -> dict[str, np.ndarray] | None:
    """The parts of the official split, by name, where there are any."""
    there = {key.removeprefix(prefix): value for key, value in arrays.items() if key.startswith(prefix)}
    if "val" in there:
        there["valid"] = there.pop("val")
    return there or None


def stored(arrays: Mapping[str, np.ndarray], key: str) -> list[int] | None:
    """How many categories columns have, where the file says so."""
    return arrays[key].astype(np.int64).reshape(-1).tolist() if key in arrays else None


def named(arrays: Mapping[str, np.ndarray], key: str) -> tuple[str, ...] | None:
    """Names, where the file has them."""
    return tuple(str(name) for name in arrays[key].reshape(-1)) if key in arrays else None
