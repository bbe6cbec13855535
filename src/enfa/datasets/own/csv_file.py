"""A benchmark from a CSV file of molecules."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from torch_geometric.data import Data

from enfa.datasets.assemble import assemble
from enfa.datasets.benchmark import REGRESSION, Benchmark, Metric
from enfa.datasets.molecules import ATOM_CHANNELS, BOND_CHANNELS
from enfa.datasets.own.bad import BadRow, BadRows, reasons
from enfa.datasets.own.graphs import joined
from enfa.datasets.own.labels import Asked, Labels, read_labels
from enfa.datasets.own.molecule_rows import read_molecules, smiles_column
from enfa.datasets.own.split import at_random, by_scaffold, column_of, part_of
from enfa.datasets.own.table import Table, listed, read_table

__all__ = ["from_csv"]


def from_csv(
    path: str | Path,
    *,
    smiles: str | None = None,
    targets: Sequence[str] | None = None,
    task: Asked = "auto",
    split: str = "random",
    seed: int = 0,
    metric: Metric | None = None,
    skip_bad: bool = False,
    report: Callable[[list[BadRow], int], None] | None = None,
) -> Benchmark:
    """A benchmark from a CSV file with a header, a molecule on every row.

    ``smiles`` is the column of SMILES strings (by default the one named so), ``targets`` the columns to learn (by default the
    one other column there is). A blank label is one that was not measured; rows without any are left out. ``task`` is
    "classification", "regression", or "auto" to see which (see ``read_labels``); numbers are standardised by mean and
    deviation of the training molecules. ``split`` is "random" (eight tenths, one and one, drawn by ``seed``, each class in its
    share), "scaffold" or "column:NAME", where that column says train, valid or test.

    Rows that cannot be read are refused, all of them in one :class:`BadRows`; ``skip_bad`` leaves them out. ``report`` is
    called with these and the number of rows without a label. Needs rdkit (``pip install enfa[chem]``).
    """
    path = Path(path)
    table = read_table(path)
    parts_column = column_of(split)
    molecules = smiles_column(table, smiles)
    named = _targets(table, [name for name in (molecules, parts_column) if name is not None], targets)
    with _naming(path):
        labels = read_labels({name: table.column(name) for name in named}, task)
    texts = table.column(molecules)
    found = read_molecules(texts, table, scaffolds=split == "scaffold")
    wrong = [table.bad_row(row, texts[row], why) for row, why in labels.wrong]
    parts = [] if parts_column is None else table.column(parts_column)
    unsplit = [
        table.bad_row(row, texts[row], f"Expected {parts_column} to be train, valid or test, got {text!r}")
        for row, text in enumerate(parts)
        if part_of(text) is None
    ]
    bad = reasons(found.bad, wrong, unsplit)
    if bad and not skip_bad:
        raise BadRows(path, bad, len(table))
    good = found.good & ~np.isin(table.lines, [row.line for row in bad])
    kept = np.flatnonzero(good & labels.measured)
    if report is not None:
        report(bad, int((good & ~labels.measured).sum()))
    if not len(kept):
        raise ValueError(f"{path}: Expected at least one molecule with a label, got none")
    y = labels.y[kept]
    if parts_column is not None:
        of = np.array([part_of(parts[row]) for row in kept])
        splits = {part: np.flatnonzero(of == part) for part in ("train", "valid", "test")}
    else:
        with _naming(path):
            scaffolds = [found.scaffolds[row] for row in kept] if found.scaffolds else []
            splits = by_scaffold(scaffolds) if split == "scaffold" else at_random(_strata(labels, y), seed)
    return _benchmark(path, [graph for row in kept if (graph := found.graphs[row]) is not None], labels, y, splits, metric)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _targets(table: Table, taken: Sequence[str], given: Sequence[str] | None) -> list[str]:
    if not given:
        others = [name for name in table.columns if name not in taken]
        if len(others) == 1:
            return others
        raise ValueError(f"{table.path}: Expected --target to name one or more columns to learn, of {listed(others)}, got none")
    for name in given:
        if name in taken:
            raise ValueError(f"{table.path}: Expected the target {name!r} to be no column of molecules or of the split")
        table.column(name)
    return list(dict.fromkeys(given))


def _strata(labels: Labels, y: np.ndarray) -> np.ndarray:
    """What each part should have its share of: the classes, where there is one target of these."""
    if y.ndim == 1:
        return y
    return y[:, 0].astype(np.int64) if labels.task == "binary" and y.shape[1] == 1 else np.zeros(len(y), dtype=np.int64)


def _benchmark(
    path: Path, graphs: Sequence[Data], labels: Labels, y: np.ndarray, splits: dict[str, np.ndarray], metric: Metric | None
) -> Benchmark:
    mean = std = None
    if labels.task == "regression":
        mean, std = _scale(path, labels.targets, y[splits["train"]])
        metric = metric or "mae"
    elif metric in REGRESSION:
        raise ValueError(f"{path}: the metric {metric} is for numbers, got a classification task")
    data = assemble(
        path.stem, joined(str(path), graphs), y, metric=metric, num_outputs=len(labels.classes or labels.targets),
        in_channels=ATOM_CHANNELS, edge_channels=BOND_CHANNELS, splits=splits, targets=labels.targets, mean=mean, std=std,
    )  # fmt: skip
    if data.task == "binary" and data.metric != "accuracy":
        _check_both(path, data)
    return replace(data, classes=labels.classes)


def _scale(path: Path, targets: Sequence[str], y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of the training molecules' numbers; a deviation of 1 where all are the same."""
    for place, name in enumerate(targets):
        if np.isnan(y[:, place]).all():
            raise ValueError(f"{path}: Expected at least one training molecule with a number for {name!r}, got none")
    std = np.nanstd(y, axis=0)
    return np.nanmean(y, axis=0), np.where(std > 0, std, 1.0)


def _check_both(path: Path, data: Benchmark) -> None:
    """Before an epoch is spent: ROC-AUC and average precision need a yes and a no among the molecules they are taken of."""
    for part in ("valid", "test"):
        y = data.labels[data.split()[part]]
        if not ((y == 1).any(axis=0) & (y == 0).any(axis=0)).any():
            raise ValueError(
                f"{path}: Expected a yes and a no among the {len(y)} molecules to {part} on, without which {data.metric} is "
                f"not defined, got one of the two: use another split, more molecules, or metric=accuracy"
            )
