"""Telling users about rows that cannot be read: some of them on the terminal, all of them in a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from enfa.datasets.own import BadRow, BadRows
from enfa.graphs.numbers import how_many
from enfa.training.disk import write_csv
from enfa.training.settings.config import Config

if TYPE_CHECKING:
    from enfa.datasets import Benchmark

__all__ = ["check_list", "listing", "opened", "say", "say_unseen"]

SHOWN = 20
HEADER = ",".join(BadRow._fields)


def check_list(file: Path, force: bool) -> None:
    """Refuse to write over a file that is no earlier list of bad rows."""
    if file.exists() and not force:
        with file.open(encoding="utf-8", errors="replace") as lines:
            if lines.readline().strip() != HEADER:
                raise ValueError(f"{file} exists: --force replaces it")


def say(bad: Sequence[BadRow], file: Path, unlabelled: int = 0) -> None:
    """A line for each on standard error; where there are more than 20, the rest are counted, and all are in the file."""
    console = Console(stderr=True)
    for row in bad[:SHOWN]:
        console.print(Text(str(row)), soft_wrap=True)
    if len(bad) > SHOWN:
        write_csv(file, [row._asdict() for row in bad])
        console.print(Text(f"… and {len(bad) - SHOWN} more: all are in {file}"), soft_wrap=True)
    if bad:
        console.print(f"{how_many(len(bad), 'row')} could not be read", soft_wrap=True)
    if unlabelled:
        console.print(f"{how_many(unlabelled, 'row')} without a label left out", soft_wrap=True)


def say_unseen(rows: Sequence[BadRow]) -> None:
    """Predictions to be careful with: 20 of them, and how many there are."""
    console = Console(stderr=True)
    for row in rows[:SHOWN]:
        console.print(Text(str(row)), soft_wrap=True)
    if rows:
        what = "with elements that the model has not learned anything of: take their predictions with care"
        console.print(f"{how_many(len(rows), 'row')} {what}", soft_wrap=True)


def opened(config: Config) -> Benchmark:
    """The dataset of a config, and a word on rows that were left out; the list of them where a training leaves it."""
    from enfa.training.build import open_benchmark

    unread = Path(config.out) / config.name / "bad_rows.csv"
    with listing(unread):
        return open_benchmark(config, lambda bad, unlabelled: say(bad, unread, unlabelled))


@contextmanager
def listing(file: Path) -> Iterator[None]:
    """Lists the rows before the sentence that refuses them."""
    try:
        yield
    except BadRows as error:
        say(error.rows, file)
        raise
