"""Telling users about rows that cannot be read: some of them on the terminal, all of them in a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.text import Text

from enfa.datasets.own import BadRow, BadRows
from enfa.training.disk import write_csv

__all__ = ["listing", "say"]

SHOWN = 20


def say(bad: Sequence[BadRow], file: Path) -> None:
    """A line for each on standard error; where there are more than 20, the rest are counted, and all are in the file."""
    console = Console(stderr=True)
    for row in bad[:SHOWN]:
        console.print(Text(str(row)), soft_wrap=True)
    if len(bad) > SHOWN:
        write_csv(file, [row._asdict() for row in bad])
        console.print(Text(f"… and {len(bad) - SHOWN} more: all are in {file}"), soft_wrap=True)


@contextmanager
def listing(file: Path) -> Iterator[None]:
    """Lists the rows before the sentence that refuses them."""
    try:
        yield
    except BadRows as error:
        say(error.rows, file)
        raise
