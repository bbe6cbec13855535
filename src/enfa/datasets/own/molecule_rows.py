"""The molecules of a table: which column has them, their graphs, and the rows that have none."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from torch_geometric.data import Data

from enfa.datasets.molecules import graph_of, needs_rdkit, parse, quietly
from enfa.datasets.own.bad import BadRow, reasons
from enfa.datasets.own.split import scaffold
from enfa.datasets.own.table import Table, listed

__all__ = ["MoleculeRows", "read_molecules", "smiles_column"]

NAMES = ("smiles", "canonical_smiles")
LOOKED_AT = 20  # rows, to see whether a column has molecules


@dataclass(frozen=True)
class MoleculeRows:
    """A graph for every row of a table, or None where ``bad`` says why; and their scaffolds, where these were asked for."""

    graphs: list[Data | None] = field(repr=False)
    bad: list[BadRow]
    scaffolds: list[str] = field(default_factory=list, repr=False)

    @property
    def good(self) -> np.ndarray:
        return np.array([graph is not None for graph in self.graphs])


def smiles_column(table: Table, given: str | None) -> str:
    """The given column, or the one named smiles or canonical_smiles in whichever case."""
    if given is not None:
        table.column(given)  # which says so where there is none
        return given
    found = [name for name in table.columns if name.lower() in NAMES]
    if len(found) == 1:
        return found[0]
    alike = found or _alike(table)
    hint = f"; molecules seem to stand in {' and '.join(alike)}" if alike else ""
    raise ValueError(f"{table.path}: Expected --smiles to name a column, one of {listed(table.columns)}, got none{hint}")


def _alike(table: Table) -> list[str]:
    """Columns that read as molecules in most of the first rows. A number does, too: nothing is taken for it unasked."""
    try:
        needs_rdkit()
    except ImportError:
        return []
    with quietly():
        found = []
        for place, name in enumerate(table.columns):
            texts = [row[place].strip() for row in table.rows[:LOOKED_AT]]
            good = sum(any(c.isalpha() for c in text) and parse(text)[0] is not None for text in texts)
            if 2 * good > len(texts):
                found.append(name)
        return found


def read_molecules(texts: Sequence[str], table: Table, scaffolds: bool = False) -> MoleculeRows:
    """Graphs with OGB's features, whose categories are the same for all data: what is none of them has a place, too."""
    needs_rdkit()
    misshapen = {row.line for row in table.bad}
    graphs: list[Data | None] = []
    bad, found = [], []
    with quietly():
        for row, text in enumerate(texts):
            molecule, why = parse(text)
            if molecule is None:
                bad.append(table.bad_row(row, text, why))
            graphs.append(None if molecule is None or table.lines[row] in misshapen else graph_of(molecule))
            if scaffolds:
                found.append("" if graphs[-1] is None else scaffold(molecule))
    return MoleculeRows(graphs, reasons(table.bad, bad), found)
