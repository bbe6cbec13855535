"""Labels in columns of text, read line by line: what a column holds is not known before its last line."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from enfa.datasets.own.labels import ANSWERS, BLANK

__all__ = ["LineLabels"]

LARGEST = float(np.finfo(np.float32).max)  # labels are kept in so many bits, in which larger ones are infinite


class LineLabels:
    """Numbers, blanks (NaN), and yes, no, true and false as 1 and 0: what ``enfa.datasets.own.labels`` takes them for.

    Other words are classes there, whose numbers all lines together decide, so they are refused here: a line that was left out
    for such a label would be left out with all that have one, and only molecules without a label would stay. What reads as a
    number and is none, such as inf, makes a bad line like any other.
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path, self.columns = path, columns
        self._answers: dict[str, str] = {}  # the first yes or no of a column, and its first number that is neither 0 nor 1
        self._numbers: dict[str, str] = {}

    def read(self, line: int, row: Mapping[str, str]) -> list[float] | ValueError:
        """The labels of a line, or why it is a bad one."""
        found = [self._one(line, column, row[column].strip()) for column in self.columns]
        bad = [value for value in found if isinstance(value, ValueError)]
        return bad[0] if bad else [value for value in found if not isinstance(value, ValueError)]

    def _one(self, line: int, column: str, text: str) -> float | ValueError:
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
                    f"write words as numbers, or leave them blank, because --skip-bad leaves no line out for a word there"
                ) from None
            value = found
            self._answers.setdefault(column, text)
        else:
            if not abs(value) <= LARGEST:  # NaN, as in -nan, is not, either
                return ValueError(f"expected a finite number, of at most {LARGEST:.2g}, or a blank in {column!r}, got {text!r}")
            if value not in (0.0, 1.0):
                self._numbers.setdefault(column, text)
        if column in self._answers and column in self._numbers:
            raise ValueError(
                f"{self.path}, line {line}: expected either numbers or yes/no in the column {column!r}, got "
                f"{self._answers[column]!r} and {self._numbers[column]!r}"
            )
        return value
