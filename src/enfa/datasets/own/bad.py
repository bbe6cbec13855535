"""Rows of a file that cannot be read: where they are, what stands there, and why."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["BadRow", "BadRows", "reasons"]


class BadRow(NamedTuple):
    """One of them."""

    line: int
    """As an editor counts, from 1. (Of a Parquet file, which has no lines: the row, from 1.)"""
    what: str
    """What stands there: the SMILES of a molecule, or the beginning of a line."""
    why: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what!r}: {self.why}"


class BadRows(ValueError):
    """Refuses a file, with all of its bad rows in ``rows``; the sentence has the first of them."""

    def __init__(self, path: object, rows: Sequence[BadRow], count: int) -> None:
        self.rows = list(rows)
        also = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
        super().__init__(
            f"{path}: {len(rows)} of {count} rows cannot be read, {rows[0]}{also}; --skip-bad (in Python, skip_bad=True) "
            f"leaves them out"
        )


def reasons(*found: Iterable[BadRow]) -> list[BadRow]:
    """All bad rows, in the file's order, each once with all that is wrong with it."""
    by_line: dict[int, BadRow] = {}
    for row in (row for rows in found for row in rows):
        before = by_line.get(row.line)
        by_line[row.line] = row if before is None else before._replace(why=f"{before.why}; {row.why}")
    return [by_line[line] for line in sorted(by_line)]
