"""OGB's molecule datasets, from their raw CSV files.

``ogb`` 1.3.6 cannot reload its own cache under PyTorch 2.6 or later, and importing it asks the network for
its version. Its raw format is plain, so it is read here: the same graphs, edge for edge, and no dependency.
"""

import gzip
import io
import zlib
from pathlib import Path

import numpy as np

from enfa.datasets.assemble import assemble
from enfa.datasets.benchmark import Benchmark, Metric
from enfa.datasets.flat import FlatGraphs
from enfa.datasets.molecules import ATOM_CHANNELS, BOND_CHANNELS
from enfa.datasets.official.fetch import ensure_files

__all__ = ["OGB_TASKS", "load_ogb"]

# Name -> archive, number of yes/no tasks, metric; from OGB's table of datasets, regression left out.
OGB_TASKS: dict[str, tuple[str, int, Metric]] = {
    "ogbg-molhiv": ("hiv", 1, "rocauc"),
    "ogbg-moltox21": ("tox21", 12, "rocauc"),
    "ogbg-molbace": ("bace", 1, "rocauc"),
    "ogbg-molbbbp": ("bbbp", 1, "rocauc"),
    "ogbg-molclintox": ("clintox", 2, "rocauc"),
    "ogbg-molmuv": ("muv", 17, "ap"),
    "ogbg-molpcba": ("pcba", 128, "ap"),
    "ogbg-molsider": ("sider", 27, "rocauc"),
    "ogbg-moltoxcast": ("toxcast", 617, "rocauc"),
}
URL = "http://snap.stanford.edu/ogb/data/graphproppred/csv_mol_download"
RAW = ("edge", "node-feat", "edge-feat", "num-node-list", "num-edge-list", "graph-label")
PARTS = ("train", "valid", "test")


def load_ogb(name: str, root: Path) -> Benchmark:
    """One dataset with its scaffold split; each bond stands in both directions, one after the other."""
    archive, tasks, metric = OGB_TASKS[name]
    folder = root / name.replace("-", "_")
    converted = folder.with_name(folder.name + "_pyg")  # where older releases of ogb put it
    folder = converted if converted.is_dir() else folder
    files = [f"raw/{part}.csv.gz" for part in RAW] + [f"split/scaffold/{part}.csv.gz" for part in PARTS]
    ensure_files(name, folder, files, f"{URL}/{archive}.zip")

    raw = {part: _table(folder / "raw" / f"{part}.csv.gz", np.int64) for part in RAW[:-1]}
    flat = FlatGraphs(
        source=str(folder),
        num_nodes=raw["num-node-list"].reshape(-1),
        num_edges=raw["num-edge-list"].reshape(-1),
        edges=raw["edge"],
        x=raw["node-feat"],
        edge_attr=raw["edge-feat"],
    )
    splits = {part: _table(folder / "split" / "scaffold" / f"{part}.csv.gz", np.int64) for part in PARTS}
    return assemble(
        name,
        flat.with_reversed(),
        _table(folder / "raw" / "graph-label.csv.gz", np.float32),
        metric=metric,
        num_outputs=tasks,
        in_channels=ATOM_CHANNELS,
        edge_channels=BOND_CHANNELS,
        splits=splits,
    )


def _table(path: Path, dtype: type[np.generic]) -> np.ndarray:
    try:
        if dtype is np.int64:
            return np.loadtxt(path, delimiter=",", dtype=dtype, ndmin=2)
        text = gzip.decompress(path.read_bytes()).decode()
        return np.loadtxt(io.StringIO(_fill(text)), delimiter=",", dtype=dtype, ndmin=2)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise ValueError(f"{path} is cut short or damaged ({error})") from error


def _fill(text: str) -> str:
    """Write out empty cells, which mean "not measured".

    >>> _fill("1,,,0\\n,1,0,\\n")
    '1,nan,nan,0\\nnan,1,0,nan\\n'
    """
    text = text.replace("\r\n", "\n")
    for _ in range(2):  # of three commas in a row the first pass fills only every other gap
        text = text.replace(",,", ",nan,")
    text = text.replace("\n,", "\nnan,").replace(",\n", ",nan\n")
    return ("nan" if text.startswith(",") else "") + text
