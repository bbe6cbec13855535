"""A text file of molecules, read line by line."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, repeat
from pathlib import Path

import torch
from torch_geometric.data import Data

from enfa.datasets.known import is_table
from enfa.datasets.molecules import from_smiles
from enfa.datasets.own.molecule_rows import NAMES
from enfa.datasets.own.table import delimiter_of
from enfa.datasets.streams.labels import LineLabels

__all__ = ["SmilesStream"]

Line = tuple[int, str, list[float] | ValueError]  # its number, the SMILES, the labels, or why it cannot be read


class SmilesStream:
    """The molecules of a ``.csv`` or ``.tsv`` file, its column ``smiles`` (or ``canonical_smiles``), or of any other text file,
    the first word of every line.

    ``labels`` names columns of numbers, or of yes and no (1 and 0), of which each molecule's ``y`` [1, T] is made; a blank is
    NaN, "not measured". Other words are refused, and a line with a number that is not finite cannot be read.
    The graphs are those of :func:`enfa.datasets.from_smiles`; :func:`enfa.compile` makes them in its workers. The first line
    that cannot be read is refused; with ``skip_bad`` all such are left out, though none for a word as its label, and the
    attribute ``line`` of each graph is the number of its line, counted from 1.
    """

    def __init__(self, path: str | Path, labels: Sequence[str] = (), skip_bad: bool = False) -> None:
        self.path, self.labels, self.skip_bad = Path(path), tuple(labels), skip_bad
        if self.labels and not is_table(self.path):
            raise ValueError(
                f"{self.path}: expected a .csv or .tsv file, in which columns have names, with --target (in Python, "
                f"labels={list(labels)}), got another"
            )
        if not self.path.is_file():
            raise FileNotFoundError(f"There is no input file {self.path}")

    def lines(self) -> Iterator[Line]:
        try:
            with self.path.open(encoding="utf-8-sig", newline="") as file:
                if not is_table(self.path):
                    yield from ((n, line.split()[0], []) for n, line in enumerate(file, 1) if line.strip())
                    return
                rows = csv.DictReader(file, delimiter=delimiter_of(file))
                given = [name.strip() for name in rows.fieldnames or ()]
                names = {name.strip().lower(): name for name in rows.fieldnames or ()}
                molecules = next((name for name in NAMES if name in names), NAMES[0])
                for name in (molecules, *self.labels):
                    if name.lower() not in names:
                        raise ValueError(f"{self.path}: expected a column {name!r}, got {', '.join(given) or 'none'}")
                    if (times := [one.lower() for one in given].count(name.lower())) > 1:
                        raise ValueError(f"{self.path}: expected one column {name!r}, got {times}")
                columns = [names[name.lower()] for name in self.labels]
                labels = LineLabels(self.path, columns)
                for row in rows:
                    values: list[float] | ValueError
                    if None in row or None in row.values():  # more cells than the header, or fewer: which is which?
                        values = ValueError(f"expected {len(given)} columns, as in the header, got another number")
                    else:
                        values = labels.read(rows.line_num, row)
                    yield (rows.line_num, (row[names[molecules]] or "").strip(), values)
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path} is not a text file of SMILES strings") from error

    def raw_blocks(self, sizes: Iterable[int]) -> Iterator[list[Line]]:
        """Lines of the given numbers of molecules, the last block maybe smaller; with ``skip_bad``, a block of which no line
        can be read is one with that before it, because a shard has at least one graph."""
        lines = self.lines()
        held: list[Line] = []
        for size in sizes:
            block = list(islice(lines, size))
            if not block:
                break
            if held and not (self._any(held) and self._any(block)):
                held += block
                continue
            if held:
                yield held
            held = block
        if held:
            yield held

    def _any(self, block: Sequence[Line]) -> bool:
        """Whether some line can be read; without ``skip_bad`` all must, which is seen later."""
        return not self.skip_bad or any(self.graphs_of([line]) for line in block)

    def graphs_of(self, raw: Iterable[Line]) -> list[Data]:
        """The graphs of some lines."""
        found = []
        for number, text, values in raw:
            try:
                graph = self._graph(text, values)
            except ValueError as error:
                if self.skip_bad:
                    continue
                skip = "--skip-bad (in Python, skip_bad=True) leaves such lines out, in a new folder"
                raise ValueError(f"{self.path}, line {number}: {error}; {skip}") from error
            if self.skip_bad:
                graph.line = number
            found.append(graph)
        return found

    @staticmethod
    def _graph(text: str, values: list[float] | ValueError) -> Data:
        if isinstance(values, ValueError):
            raise values
        try:
            (graph,) = from_smiles([text])
        except ValueError as error:
            raise ValueError(f"expected a molecule, got the SMILES {text!r}") from error
        if values:
            graph.y = torch.tensor([values])
        return graph

    def __iter__(self) -> Iterator[Data]:
        for block in self.raw_blocks(repeat(256)):
            yield from self.graphs_of(block)
