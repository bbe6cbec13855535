"""Labels in columns of text, read line by line: what a column holds is not known before its last line."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from enfa.datasets.own.labels import ANSWERS, BLANK

__all__ = ["LineLabels"]


class LineLabels:
    """Numbers, blanks (NaN), and yes, no, true and false as 1 and 0: what ``enfa.datasets.own.labels`` takes them for.

    Other words are classes there, whose numbers all lines together decide, so they are refused here: a line that was left out
    for such a label would be left out with all that have one, and only molecules without a label would stay.
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path, self.columns = path, columns
        self._answers: dict[str, str] = {}  # the first yes or no of a column, and its first number that is neither 0 nor 1
        self._numbers: dict[str, str] = {}

    def read(self, line: int, row: Mapping[str, str]) -> list[float]:
        return [self._one(line, column, row[column].strip()) for column in self.columns]

    def _one(self, line: int, column: str, text: str) -> float:
        word = text.lower()
        if word in BLANK:
            return float("nan")
        try:
            value = float(text)
        except ValueError:
            found = ANSWERS.get(word)
            if found is None:
                raise ValueError(
                    f"{self.path}, line {line}: expected numbers, yes/no or blanks in the column {column!r}, got {text!r}; "
                    f"write words as numbers, or leave them blank, because --skip-bad leaves no line out for its label"
                ) from None
            value = found
            self._answers.setdefault(column, text)
        else:
            if value not in (0.0, 1.0):
                self._numbers.setdefault(column, text)
        if column in self._answers and column in self._numbers:
            raise ValueError(
                f"{self.path}, line {line}: expected either numbers or yes/no in the column {column!r}, got "
                f"{self._answers[column]!r} and {self._numbers[column]!r}"
            )
        return value
