"""A dataset as a stream, by its name or the path of its file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from torch_geometric.data import Data

from enfa.datasets.catalogue import load
from enfa.datasets.known import NPZ_NAMES, ZINC_NAMES, check_known, compact_file, is_table, no_records
from enfa.datasets.molecules import needs_rdkit
from enfa.datasets.npz.zinc import zinc_arrays
from enfa.datasets.official.compact import FACTS
from enfa.datasets.streams.flat import FlatStream
from enfa.datasets.streams.npz import NpzStream
from enfa.datasets.streams.smiles import SmilesStream

__all__ = ["stream"]

_TEXT = (".smi", ".smiles", ".txt")


def stream(
    name: str | Path, root: str | Path = "data", *, labels: Sequence[str] = (), skip_bad: bool = False
) -> Iterable[Data]:
    """The graphs of a dataset, in the order in which :func:`enfa.datasets.load` or ``from_npz`` has them, for ``enfa.compile``.

    ``name`` is a benchmark's, an ``.npz`` file, or a text file of SMILES strings (.csv, .tsv, .smi, .smiles, .txt), of which
    ``labels`` names the columns to learn from, and ``skip_bad`` leaves out lines that cannot be read. Files are read block by
    block; benchmarks that exist as raw files only, at once.
    """
    path = Path(name)
    no_records(path)
    if is_table(path) or path.suffix in _TEXT:
        needs_rdkit()  # now, and not in the workers
        return SmilesStream(path, labels, skip_bad)
    if skip_bad:
        raise ValueError(f"Expected a text file of molecules, of which lines may be left out, with skip_bad, got {name}")
    if labels:
        told = f"--target (in Python, labels={list(labels)})"
        raise ValueError(f"Expected a .csv or .tsv file, in which columns have names, with {told}, got {name}")
    if path.suffix == ".npz":
        if not path.is_file():
            raise FileNotFoundError(f"{name}: no such file")
        return NpzStream(path)
    if name in ZINC_NAMES:
        flat, y = zinc_arrays(str(name), compact_file(str(name), root))
        return FlatStream(flat, y.astype("float32"))
    check_known(str(name), root)
    file = compact_file(str(name), root)
    if name not in NPZ_NAMES and file.is_file():
        return NpzStream(file, metric=FACTS.get(str(name), {}).get("metric"))
    return load(str(name), root).graphs
