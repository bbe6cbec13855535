"""Labels in columns of text, read line by line."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from enfa.datasets.own.labels import BLANK, kind_of, read_label

__all__ = ["LineLabels"]

LARGEST = float(np.finfo(np.float32).max)  # labels are kept in so many bits, in which larger ones are infinite


class LineLabels:
    """Numbers, blanks (NaN), and yes, no, true and false as 1 and 0: what ``enfa.datasets.own.labels`` takes them for.

    What a word is there depends on the whole column: a bad row among numbers or answers, a class where most are words. So with
    the first word all ``texts`` of its column are looked through, once. Classes are refused here, because their numbers are
    those of all lines together. What reads as a number and is none, such as inf, makes a bad line, too.
    """

    def __init__(self, path: Path, columns: Sequence[str], texts: Callable[[str], Iterable[str]]) -> None:
        self.path, self.columns, self.texts = path, columns, texts
        self._kinds: dict[str, str] = {}  # of columns with a word

    def read(self, line: int, row: Mapping[str, str]) -> list[float] | ValueError:
        """The labels of a line, or why it is a bad one."""
        found = [self._one(line, column, row[column].strip()) for column in self.columns]
        bad = [value for value in found if isinstance(value, ValueError)]
        return bad[0] if bad else [value for value in found if not isinstance(value, ValueError)]

    def _one(self, line: int, column: str, text: str) -> float | ValueError:
        if text.lower() in BLANK:
            return float("nan")
        try:
            value = float(text)
        except ValueError:
            return self._word(line, column, text)
        if not abs(value) <= LARGEST:  # NaN, as in -nan, is not, either
            return ValueError(f"expected a finite number, of at most {LARGEST:.2g}, or a blank in {column!r}, got {text!r}")
        return value

    def _word(self, line: int, column: str, text: str) -> float | ValueError:
        if column not in self._kinds:
            try:
                self._kinds[column] = kind_of(column, self.texts(column), "regression")
            except ValueError as error:
                raise ValueError(f"{self.path}: {error}") from error
        if self._kinds[column] == "words":
            raise ValueError(
                f"{self.path}, line {line}: expected numbers, yes/no or blanks in the column {column!r}, got {text!r}, and "
                f"words in most of its lines, which are classes to enfa train: write them as numbers, because --skip-bad "
                f"leaves no line out for a class"
            )
        found = read_label(column, text, self._kinds[column] == "answers")
        return ValueError(found) if isinstance(found, str) else found
