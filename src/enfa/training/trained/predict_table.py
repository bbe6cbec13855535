"""Predictions beside the rows of a table of molecules."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from enfa.datasets.molecules import elements_of, symbol
from enfa.datasets.own import BadRow, BadRows
from enfa.datasets.own.bad import reasons
from enfa.datasets.own.molecule_rows import read_molecules, smiles_column
from enfa.datasets.own.table import Table, read_table
from enfa.training.checkpoint import load_model
from enfa.training.problem import Problem
from enfa.training.trained.members import members
from enfa.training.trained.predict import outputs

__all__ = ["Predicted", "predict_table"]


@dataclass(frozen=True)
class Predicted:
    """All rows of a table as they were, with columns of predictions behind theirs: blank where ``bad`` says why."""

    table: Table
    rows: list[dict[str, Any]]
    bad: list[BadRow]
    unseen: list[BadRow]
    """Rows of molecules with elements that the model has not learned anything of. They do have predictions."""

    @property
    def count(self) -> int:
        """Of rows with a prediction."""
        return len(self.rows) - len(self.bad)


def predict_table(
    source: str | Path, path: Path, smiles: str | None = None, batch_size: int = 32, skip_bad: bool = False
) -> Predicted:
    """With a checkpoint or the folder of an ensemble. ``smiles`` is the column of molecules: by default the one that the model
    was trained with, if there is one of that name here."""
    _, config, problem = load_model(members(Path(source))[0])
    if problem.level != "graph":
        raise ValueError(f"{path}: Expected a model of graphs to predict for molecules, got one of {problem.level}")
    table = read_table(path)
    if smiles is None and config.smiles in table.columns:
        smiles = config.smiles
    texts = table.column(smiles_column(table, smiles))
    found = read_molecules(texts, table)
    strange = [
        table.bad_row(row, texts[row], why)
        for row, graph in enumerate(found.graphs)
        if graph is not None and (why := unknown_category(graph, problem))
    ]
    bad = reasons(found.bad, strange)
    if bad and not skip_bad:
        raise BadRows(path, bad, len(table))
    lines = {row.line for row in bad}
    good = [row for row, line in enumerate(table.lines) if line not in lines]
    if not good:
        raise ValueError(f"{path}: Expected at least one molecule to predict for, got none that can be read")
    named = list(outputs(source, [graph for row in good if (graph := found.graphs[row])], batch_size).named(prefix=True))
    _check_new(table, list(named[0]))
    of = dict(zip(good, named))
    blank = dict.fromkeys(named[0], "")
    rows = [{**dict(zip(table.columns, row)), **of.get(k, blank)} for k, row in enumerate(table.rows)]
    return Predicted(table, rows, bad, _unseen(table, texts, good, found.graphs, problem))


def _unseen(
    table: Table, texts: Sequence[str], good: Sequence[int], graphs: Sequence[Data | None], problem: Problem
) -> list[BadRow]:
    found = []
    for row in good if problem.elements is not None else ():
        graph = graphs[row]
        new = [] if graph is None else [e for e in elements_of([graph]) if e not in (problem.elements or ())]
        if new:
            why = f"no training molecule has {', '.join(map(symbol, new))}"
            found.append(table.bad_row(row, texts[row], why))
    return found


def _check_new(table: Table, columns: Sequence[str]) -> None:
    there = [name for name in columns if name in table.columns]
    if there:
        raise ValueError(f"{table.path}: Expected no column {there[0]!r}, which is for predictions: rename it or leave it out")


def unknown_category(graph: Data, problem: Problem) -> str | None:
    """What of a molecule a model has no place for: only one whose categories were those of some other data."""
    for what, values, channels in (("atom", graph.x, problem.in_channels), ("bond", graph.edge_attr, problem.edge_channels)):
        if isinstance(channels, list) and isinstance(values, torch.Tensor) and values.shape[1] == len(channels):
            beyond = (values >= torch.tensor(channels)).nonzero()
            if len(beyond):
                row, column = beyond[0].tolist()
                got = int(values[row, column])
                return f"Expected {what} features in column {column} below {channels[column]}, as the model was made, got {got}"
    return None
