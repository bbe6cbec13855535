"""Datasets by name."""

from collections.abc import Callable
from pathlib import Path

from enfa.datasets.benchmark import Benchmark
from enfa.datasets.known import NPZ_NAMES, check_known, compact_file, elsewhere
from enfa.datasets.official.compact import from_compact
from enfa.datasets.official.csl import load_csl
from enfa.datasets.official.graphsat import load_graphsat
from enfa.datasets.official.lrgb import load_peptides_func
from enfa.datasets.official.ogb_csv import OGB_TASKS, load_ogb
from enfa.datasets.official.tu import load_tu

__all__ = ["load"]


def load(name: str, root: str | Path = "data", *, use_node_attr: bool = False) -> Benchmark:
    """A benchmark by its official name, with its official split and metric.

    ``root/NAME.npz`` is read where it is there (hyphens as underscores; arrays are those of ``from_npz``). Else raw files
    are read from below ``root``, laid out as the official loaders lay them out
    (``root/PROTEINS/raw/PROTEINS_A.txt``, ``root/ogbg_molhiv/raw/edge.csv.gz``, ``root/peptides-func/raw/train.pt``,
    ``root/EXP/raw/GRAPHSAT.txt``), and are downloaded there if they are missing. ZINC, whose raw files are pickles, and
    substructure counting are read from ``root/ZINC.npz`` and ``root/counting.npz``, SR25 from ``root/SR25.npz`` or
    ``root/SR25/raw/sr251256.g6``; CSL is generated. For BREC, which has pairs and no labels, see ``load_brec``. Nothing is
    unpickled and no cache is written. ``use_node_attr`` adds the continuous attributes that some datasets of the TU collection
    have.

    Raises ``ValueError`` for a name it does not know and for files that are damaged, ``FileNotFoundError``
    for files that are missing and cannot be downloaded; each in a sentence that says what to do.

    >>> load("CSL")
    Benchmark(name='CSL', metric='accuracy', task='multiclass', num_outputs=10, in_channels=[1], \
edge_channels=None, num_folds=5)
    """
    root = Path(root)
    readers: dict[str, Callable[[], Benchmark]] = {
        "EXP": lambda: load_graphsat("EXP", root),
        "CEXP": lambda: load_graphsat("CEXP", root),
        "CSL": load_csl,
        "peptides-func": lambda: load_peptides_func(root),
        **{npz: lambda npz=npz: from_compact(npz, root) for npz in NPZ_NAMES},  # type: ignore[misc]
        **{ogb: lambda ogb=ogb: load_ogb(ogb, root) for ogb in OGB_TASKS},  # type: ignore[misc]
    }
    if name in readers and use_node_attr:
        raise ValueError(f"{name} has no node attributes")
    check_known(name, root)
    if compact_file(name, root).is_file():
        return from_compact(name, root, use_node_attr=use_node_attr)
    try:
        return readers[name]() if name in readers else load_tu(name, root, use_node_attr)
    except FileNotFoundError as error:
        if error.filename is not None or name in NPZ_NAMES:  # the system's own; those that say it themselves
            raise
        raise FileNotFoundError(f"{error} {elsewhere(name, root)}") from error
