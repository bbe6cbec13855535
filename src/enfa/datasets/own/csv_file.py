"""A benchmark from a CSV file of molecules."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from torch_geometric.data import Data

from enfa.datasets.assemble import assemble
from enfa.datasets.benchmark import PARTS, REGRESSION, Benchmark, Metric
from enfa.datasets.molecules import ATOM_CHANNELS, BOND_CHANNELS, elements_of
from enfa.datasets.own.bad import BadRow, BadRows, reasons
from enfa.datasets.own.graphs import joined
from enfa.datasets.own.labels import Asked, Labels, read_labels
from enfa.datasets.own.learnable import check_scored, check_trained
from enfa.datasets.own.molecule_rows import read_molecules, smiles_column
from enfa.datasets.own.split import at_random, by_scaffold, check_column, column_of, part_of
from enfa.datasets.own.table import Table, listed, read_table
from enfa.datasets.scale import mean_and_std

__all__ = ["CsvMolecules", "from_csv", "read_csv"]

Report = Callable[[list[BadRow], int], None]


@dataclass(frozen=True)
class CsvMolecules:
    """The molecules of a CSV file that have a graph, and a label where any was asked for."""

    graphs: list[Data] = field(repr=False)
    labels: Labels | None
    y: np.ndarray | None = field(repr=False)  # of these graphs, in the units of the file
    splits: dict[str, np.ndarray] | None = field(repr=False)


def from_csv(
    path: str | Path,
    *,
    smiles: str | None = None,
    targets: str | Sequence[str] | None = None,
    task: Asked = "auto",
    split: str = "random",
    seed: int = 0,
    metric: Metric | None = None,
    skip_bad: bool = False,
    report: Report | None = None,
) -> Benchmark:
    """A benchmark from a CSV file with a header, a molecule on every row.

    ``smiles`` is the column of SMILES strings (by default the one named so), ``targets`` the columns to learn, or the name of
    one (by default the one other column there is). A blank label is one that was not measured; rows without any are left out.
    ``task`` is "classification", "regression", or "auto" to see which (see ``read_labels``); numbers are standardised by mean
    and deviation of the training molecules. ``split`` is "random" (eight tenths, one and one, drawn by ``seed``, each class in
    its share), "scaffold" or "column:NAME", where that column says train, valid or test.

    Rows that cannot be read are refused, all of them in one :class:`BadRows`; ``skip_bad`` leaves them out. ``report`` is
    called with these and the number of rows without a label. Needs rdkit (``pip install enfa[chem]``).
    """
    path = Path(path)
    targets = [targets] if isinstance(targets, str) else targets or ()
    found = read_csv(path, smiles=smiles, targets=targets, task=task, split=split, seed=seed, skip_bad=skip_bad, report=report)
    return _benchmark(path, found, metric)


def read_csv(
    path: Path,
    *,
    smiles: str | None = None,
    targets: Sequence[str] | None = None,
    task: Asked = "auto",
    split: str | None = None,
    seed: int = 0,
    skip_bad: bool = False,
    report: Report | None = None,
) -> CsvMolecules:
    """As for ``from_csv``; but without targets (None: an empty list means the one other column) all molecules are kept, and
    without a split there is none."""
    table = read_table(path)
    parts_column = None if split is None else column_of(split)
    molecules = smiles_column(table, smiles)
    texts = table.column(molecules)
    labels = None
    if targets is not None:
        named = _targets(table, [name for name in (molecules, parts_column) if name is not None], targets)
        with _naming(path):
            labels = read_labels({name: table.column(name) for name in named}, task)
    rows = read_molecules(texts, table, scaffolds=split == "scaffold")
    wrong = [] if labels is None else [table.bad_row(row, texts[row], why) for row, why in labels.wrong]
    parts = [] if parts_column is None else table.column(parts_column)
    unsplit = [
        table.bad_row(row, texts[row], f"Expected {parts_column} to be train, valid or test, got {text!r}")
        for row, text in enumerate(parts)
        if part_of(text) is None
    ]
    bad = reasons(rows.bad, wrong, unsplit)
    if bad and not skip_bad:
        raise BadRows(path, bad, len(table))
    if parts_column is not None:
        with _naming(path):
            check_column(parts_column, map(part_of, parts))
    good = rows.good & ~np.isin(table.lines, [row.line for row in bad])
    measured = np.ones(len(table), dtype=bool) if labels is None else labels.measured
    kept = np.flatnonzero(good & measured)
    if report is not None:
        report(bad, int((good & ~measured).sum()))
    if not len(kept):
        raise ValueError(f"{path}: Expected at least one molecule{' with a label' * (labels is not None)}, got none")
    y = None if labels is None else labels.y[kept]
    splits = None
    if parts_column is not None:
        of = np.array([part_of(parts[row]) for row in kept])
        splits = {part: np.flatnonzero(of == part) for part in PARTS}
    elif split is not None:
        with _naming(path):
            scaffolds = [rows.scaffolds[row] for row in kept] if rows.scaffolds else []
            splits = by_scaffold(scaffolds) if split == "scaffold" else at_random(_strata(labels, y, len(kept)), seed)
    return CsvMolecules([graph for row in kept if (graph := rows.graphs[row]) is not None], labels, y, splits)


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


def _strata(labels: Labels | None, y: np.ndarray | None, count: int) -> np.ndarray:
    """What each part should have its share of: the classes, where there is one target of these."""
    if y is not None and labels is not None and y.ndim == 1:
        return y
    one = y is not None and labels is not None and labels.task == "binary" and y.shape[1] == 1
    return y[:, 0].astype(np.int64) if y is not None and one else np.zeros(count, dtype=np.int64)


def _benchmark(path: Path, found: CsvMolecules, metric: Metric | None) -> Benchmark:
    labels, y, splits = found.labels, found.y, found.splits
    assert labels is not None and y is not None and splits is not None
    mean = std = None
    if labels.task == "regression":
        mean, std = mean_and_std(str(path), labels.targets, y[splits["train"]], "molecule")
        metric = metric or "mae"
        if metric not in REGRESSION:
            raise ValueError(f"{path}: the metric {metric} is for yes/no tasks and classes, got numbers")
    elif metric in REGRESSION:
        raise ValueError(f"{path}: the metric {metric} is for numbers, got a classification task")
    else:
        check_trained(path, labels.targets, y[splits["train"]], labels.classes)
    data = assemble(
        path.stem, joined(str(path), found.graphs), y, metric=metric, num_outputs=len(labels.classes or labels.targets),
        in_channels=ATOM_CHANNELS, edge_channels=BOND_CHANNELS, splits=splits, targets=labels.targets, mean=mean, std=std,
    )  # fmt: skip
    check_scored(path, data)
    return replace(data, classes=labels.classes, elements=elements_of([found.graphs[k] for k in splits["train"]]))
