"""Tables of text: CSV files with a header, and files with a SMILES string at the beginning of every line."""

import csv
import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from enfa.datasets.known import is_table, no_records
from enfa.datasets.own.bad import BadRow

__all__ = ["Table", "delimiter_of", "read_table"]


@dataclass(frozen=True)
class Table:
    """Rows of text, each as long as the header. ``bad`` has those of the file that are not, which are filled up or cut here."""

    path: Path
    columns: list[str]
    rows: list[list[str]] = field(repr=False)
    lines: list[int] = field(repr=False)
    """Where in the file each row begins, from 1."""
    delimiter: str = ","
    bad: list[BadRow] = field(default_factory=list, repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> list[str]:
        """The texts of a column, without blanks around them."""
        if name not in self.columns:
            close = difflib.get_close_matches(name, self.columns, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise ValueError(f"{self.path}: Expected a column {name!r}, got {listed(self.columns)}{hint}")
        place = self.columns.index(name)
        return [row[place].strip() for row in self.rows]

    def bad_row(self, row: int, what: str, why: str) -> BadRow:
        return BadRow(self.lines[row], what, why)


def listed(columns: Sequence[str]) -> str:
    """The columns in words."""
    return ", ".join(columns) or "none"


def read_table(path: str | Path) -> Table:
    """A ``.csv`` or ``.tsv`` file, its columns between commas, semicolons or tabs, whichever the header has most of; of any
    other file the first word of every line as ``smiles``, and what follows as ``name``. Empty lines are no rows."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no input file {path}")
    no_records(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:  # Excel begins its files with a byte order mark
            table = _with_header(path, file) if is_table(path) else _words(path, file)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path}: Expected a text file in UTF-8 with a row on every line, got another ({error})") from error
    if not table.rows:
        raise ValueError(f"{path}: Expected at least one row, got none")
    return table


def delimiter_of(file: TextIO) -> str:
    """Between the columns: whichever of comma, semicolon and tab the header has most of. The file is at its beginning again."""
    first = file.readline()
    file.seek(0)
    return max((",", ";", "\t"), key=first.count)


def _with_header(path: Path, file: TextIO) -> Table:
    delimiter = delimiter_of(file)
    reader = csv.reader(file, delimiter=delimiter)
    columns = [name.strip() for name in next(reader, [])]
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise ValueError(f"{path}: Expected columns with names of their own, got {twice[0]!r} twice")
    table = Table(path, columns, [], [], delimiter)
    begins = reader.line_num + 1
    for row in reader:
        if row:
            if len(row) != len(columns):
                why = f"Expected {len(columns)} columns, got {len(row)}"
                table.bad.append(BadRow(begins, delimiter.join(row)[:80], why))
            table.rows.append((row + [""] * len(columns))[: len(columns)])
            table.lines.append(begins)
        begins = reader.line_num + 1
    return table


def _words(path: Path, file: TextIO) -> Table:
    found = [(line, text.split(maxsplit=1)) for line, text in enumerate(file, 1) if text.strip()]
    names = any(len(words) > 1 for _, words in found)
    rows = [[words[0], *((words[1].strip() if len(words) > 1 else "",) if names else ())] for _, words in found]
    return Table(path, ["smiles", "name"] if names else ["smiles"], rows, [line for line, _ in found])
