"""The names of datasets, and what can be said of one before it is read. Needs no PyTorch."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from enfa.datasets.official.fetch import ensure_tu

__all__ = [
    "COUNTING_NAMES", "JSON", "NPZ_NAMES", "OGB_NAMES", "PARQUET", "TU_NAMES", "ZINC_NAMES", "check_known", "compact_file",
    "dataset_file", "elsewhere", "is_file_name", "is_records", "is_table", "names", "no_records",
]  # fmt: skip

# fmt: off
TU_NAMES = [
    "AIDS", "BZR", "COLLAB", "COLORS-3", "COX2", "DD", "DHFR", "ENZYMES", "FRANKENSTEIN", "IMDB-BINARY",
    "IMDB-MULTI", "KKI", "Letter-high", "Letter-low", "Letter-med", "MSRC_9", "MSRC_21", "MUTAG",
    "Mutagenicity", "NCI1", "NCI109", "OHSU", "PROTEINS", "PROTEINS_full", "PTC_FM", "PTC_FR", "PTC_MM",
    "PTC_MR", "REDDIT-BINARY", "REDDIT-MULTI-5K", "REDDIT-MULTI-12K", "SYNTHETIC", "SYNTHETICnew",
    "Synthie", "TRIANGLES", "github_stargazers", "reddit_threads", "twitch_egos",
]
# fmt: on
"""The best known names of the collection, to suggest; any other one loads as well."""

OGB_NAMES = (
    "ogbg-molhiv", "ogbg-moltox21", "ogbg-molbace", "ogbg-molbbbp", "ogbg-molclintox", "ogbg-molmuv", "ogbg-molpcba",
    "ogbg-molsider", "ogbg-moltoxcast",
)  # fmt: skip
ZINC_NAMES, COUNTING_NAMES = ("ZINC", "ZINC-full"), ("counting", "counting-graphs")
NPZ_NAMES = (*ZINC_NAMES, *COUNTING_NAMES, "SR25")
"""Benchmarks that have no raw files but pickles, or none at all, and are read from ``.npz`` files only."""

JSON, PARQUET = (".jsonl", ".ndjson"), (".parquet",)


def names() -> list[str]:
    """The names that ``load`` knows; it takes any other dataset of the TU collection too."""
    return ["EXP", "CEXP", "CSL", "peptides-func", *OGB_NAMES, *NPZ_NAMES, *TU_NAMES]


def compact_file(name: str, root: str | Path) -> Path:
    """Where the ``.npz`` file of a benchmark would lie."""
    stem = "ZINC" if name in ZINC_NAMES else "counting" if name in COUNTING_NAMES else name.replace("-", "_")
    return Path(root) / f"{stem}.npz"


def is_file_name(name: str) -> bool:
    """Whether it is what a benchmark's file is called, with underscores, and no benchmark.

    >>> is_file_name("peptides_func"), is_file_name("peptides-func"), is_file_name("MSRC_9")
    (True, False, False)
    """
    return name not in names() and name in {other.replace("-", "_") for other in names()}


def elsewhere(name: str, root: str | Path) -> str:
    """For errors of missing data: what else would do, and how to name another folder."""
    there = "" if Path(root).is_dir() else f"There is no folder {root}. "
    return (
        f"{there}The one file {compact_file(name, root)} would do (docs/datasets.md says what it holds); root=FOLDER of enfa "
        f"train, or --root FOLDER of other commands, names another folder"
    )


def is_table(path: str | Path) -> bool:
    """Whether a file is one of columns with names, by its own name."""
    return Path(path).suffix.lower() in (".csv", ".tsv")


def is_records(path: str | Path) -> bool:
    """Whether a file is one of JSON lines or of Parquet, by its own name."""
    return Path(path).suffix.lower() in (*JSON, *PARQUET)


def no_records(path: str | Path) -> None:
    """Refuse a file that only ``enfa convert`` reads, by every other command alike."""
    if is_records(path):
        raise ValueError(f"Expected an .npz file of graphs, got {path}: enfa convert makes one of it")


def dataset_file(name: str | Path) -> Path:
    """The path of a file of graphs that is there."""
    path = Path(name)
    if not path.is_file():
        looked = "" if path.is_absolute() else f" in {Path.cwd()} (dataset=PATH names another place)"
        raise FileNotFoundError(f"There is no dataset file {path}{looked}")
    return path


def check_known(name: str, root: str | Path, also: Sequence[str] = ()) -> None:
    """Refuse what no dataset is called, and a path where no file is. ``also``: names that the caller reads by itself.

    A name that only the TU collection may know is looked for there: its raw files are downloaded now, not when it is read.
    """
    if name.endswith(".npz") or is_table(name):
        dataset_file(name)
        return
    if name == "BREC":
        raise ValueError("BREC has pairs of graphs and no labels to learn: enfa.datasets.load_brec reads it")
    if name in names():
        return
    if is_file_name(name):  # read as a file of one's own, it would have neither the metric nor the features of the benchmark
        raise unknown_dataset(name, root, also)
    if compact_file(name, root).is_file():
        return
    if not name or set(name) & set("/\\:*?[]"):  # a TU name becomes a folder and an address
        raise unknown_dataset(name, root, also)
    try:
        ensure_tu(name, Path(root))
    except FileNotFoundError as error:
        raise unknown_dataset(name, root, also) from error


def unknown_dataset(name: str, root: str | Path, also: Sequence[str]) -> ValueError:
    """Says which datasets there are, and which was probably meant."""
    known = [*also, *names()]
    folded = {other.casefold(): other for other in known}
    close = difflib.get_close_matches(name.casefold(), folded, n=1)
    hint = f"; did you mean {folded[close[0]]!r}?" if close else "."
    return ValueError(
        f"Unknown dataset {name!r}{hint} Known are {', '.join(known)}, and any other TU dataset that can be "
        f"downloaded or has its raw files in {Path(root) / name / 'raw'}."
    )
