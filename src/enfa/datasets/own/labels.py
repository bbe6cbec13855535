"""From columns of text to labels: yes/no tasks, classes or numbers, and blanks where nothing was measured."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from enfa.datasets.benchmark import Task

__all__ = ["BLANK", "Asked", "Labels", "kind_of", "read_label", "read_labels"]

Asked = Literal["auto", "classification", "regression"]
BLANK = frozenset({"", "na", "n/a", "nan", "null"})
ANSWERS = {"1": 1.0, "1.0": 1.0, "true": 1.0, "yes": 1.0, "0": 0.0, "0.0": 0.0, "false": 0.0, "no": 0.0}
FEW = 10  # whole numbers of at most so many kinds may be classes as well as counts
COMMA = re.compile(r"[+-]?\d+,\d+")  # a number as some countries write it
MANY = 100  # more classes than these are taken for a mistake


@dataclass(frozen=True)
class Labels:
    """What a model is to learn: ``y`` is int64 ``[R]`` (multiclass; -1 where blank) or float64 ``[R, T]`` (NaN where blank)."""

    task: Task
    y: np.ndarray = field(repr=False)
    targets: tuple[str, ...]
    classes: tuple[str, ...] | None = None
    wrong: list[tuple[int, str]] = field(default_factory=list)
    """Rows whose labels are none, and why."""

    @property
    def measured(self) -> np.ndarray:
        """Which rows have a label at all."""
        return self.y >= 0 if self.y.ndim == 1 else ~np.isnan(self.y).all(axis=1)


def read_labels(columns: Mapping[str, Sequence[str]], task: Asked = "auto") -> Labels:
    """The labels in some columns.

    ``task="auto"`` takes 0 and 1, yes and no, true and false for yes/no tasks, other words for classes, and numbers for
    numbers; where it could be either, it asks.

    >>> read_labels({"toxic": ["yes", "", "no"]}).y.tolist()
    [[1.0], [nan], [0.0]]
    >>> read_labels({"colour": ["red", "blue", "red"]}).classes
    ('blue', 'red')
    """
    kinds = {name: kind_of(name, values, task) for name, values in columns.items()}
    chosen = _chosen(columns, kinds, task)
    if chosen == "multiclass":
        ((name, values),) = columns.items()
        return _classes(name, values, words=kinds[name] == "words")
    y, wrong = np.full((len(next(iter(columns.values()))), len(columns)), np.nan), []
    for place, (name, values) in enumerate(columns.items()):
        for row, text in enumerate(values):
            found = read_label(name, text, chosen == "binary")
            if isinstance(found, str):
                wrong.append((row, found))
            else:
                y[row, place] = found
    for (name, values), column in zip(columns.items(), y.T):
        if len(np.unique(column[~np.isnan(column)])) < 2:
            of = {text: read_label(name, text, chosen == "binary") for text in values if text.lower() not in BLANK}
            said = sorted(text for text, found in of.items() if not isinstance(found, str))
            raise ValueError(f"Expected {name!r} to have at least two different values to learn from, got {said}")
    return Labels(chosen, y, tuple(columns), None, wrong)


def _answer(text: str) -> float | None:
    return ANSWERS.get(text.lower())


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def read_label(name: str, text: str, answers: bool) -> float | str:
    """The label that a text of a column is, of ``answers`` or of numbers, NaN where it is blank; or why it is none, and its
    row a bad one. Shared by what reads a whole table and what reads it line by line."""
    if text.lower() in BLANK:
        return math.nan
    found = _answer(text) if answers else _number(text)
    if found is None:
        return f"Expected {name} to be {'yes or no (1 or 0)' if answers else 'a number'} or blank, got {text!r}"
    return found


def kind_of(name: str, values: Iterable[str], task: Asked = "auto") -> str:
    """What a column holds: "answers", "counts" (few whole numbers), "numbers" or "words". Each text is looked at once, and
    none is kept."""
    there = numbers = answers = commas = 0
    first = ""  # of those with a comma
    different: set[float] = set()  # of the numbers, until they are no few
    all_whole = True
    for text in values:
        if text.lower() in BLANK:
            continue
        there += 1
        answers += _answer(text) is not None
        value = _number(text)
        if value is not None:
            numbers += 1
            all_whole &= value == int(value)
            if len(different) <= FEW:
                different.add(value)
        elif COMMA.fullmatch(text):
            commas, first = commas + 1, first or text
    if not there:
        raise ValueError(f"Expected at least one label in the column {name!r}, got blanks only")
    if answers == there:
        return "answers"
    # no classes, each with a row or two
    if task != "classification" and commas and 2 * (numbers + commas) >= there > 2 * numbers:
        hint = " (classes: --task classification)" if task == "auto" else ""
        raise ValueError(f"Expected numbers with a decimal point in the column {name!r}, got {first!r}{hint}")
    if 2 * numbers < there:  # a word among many numbers is a bad row, not a class
        return "words"
    if different <= {0.0, 1.0}:
        return "answers"
    return "counts" if len(different) <= FEW and all_whole else "numbers"


def _chosen(columns: Mapping[str, Sequence[str]], kinds: dict[str, str], task: Asked) -> Task:
    of = {kind: next(name for name, k in kinds.items() if k == kind) for kind in kinds.values()}
    if task not in ("auto", "classification", "regression"):
        raise ValueError(f"Expected task to be auto, classification or regression, got {task!r}")
    if set(of) == {"answers"} and task != "regression":
        return "binary"
    if "words" in of and task == "regression":
        raise ValueError(f"Expected numbers in the column {of['words']!r} for task regression, got words")
    if task == "regression":
        for name in (name for name, kind in kinds.items() if kind == "answers"):
            there = [text for text in columns[name] if text.lower() not in BLANK]
            if all(_number(text) is None for text in there):
                raise ValueError(f"Expected numbers in the column {name!r} for task regression, got {there[0]!r}")
        return "regression"
    if len(columns) > 1 and (task == "classification" or "words" in of):
        other = next(of[kind] for kind in ("words", "numbers", "counts") if kind in of)
        raise ValueError(
            f"Expected several classification targets to be yes/no (1, 0 or blank), got other values in {other!r}: "
            f"train it by itself"
        )
    if task == "classification" or "words" in of:
        return "multiclass"
    if "counts" in of:
        raise ValueError(
            f"Expected --task classification or --task regression, because the few whole numbers in {of['counts']!r} may be "
            f"classes or counts, got auto"
        )
    if "answers" in of:
        raise ValueError(
            f"Expected targets of one kind, got yes/no in {of['answers']!r} and numbers in {of['numbers']!r}: train them apart"
        )
    return "regression"


def _classes(name: str, values: Sequence[str], words: bool) -> Labels:
    there = sorted({text for text in values if text.lower() not in BLANK})
    wrong = []
    if not words:
        for row, text in enumerate(values):
            if text.lower() not in BLANK and _number(text) is None:
                wrong.append((row, f"Expected {name} to be a number or blank, like most of the column, got {text!r}"))
        there = sorted((text for text in there if _number(text) is not None), key=float)
        there = [text for k, text in enumerate(there) if not k or float(text) != float(there[k - 1])]  # 2 and 2.0 are one
    if not 2 <= len(there) <= MANY:
        raise ValueError(f"Expected 2 to {MANY} classes in the column {name!r}, got {len(there)}, such as {there[0]!r}")
    code = {text if words else float(text): number for number, text in enumerate(there)}
    found = [code.get(text if words else _number(text), -1) for text in values]  # type: ignore[arg-type]
    return Labels("multiclass", np.array(found), (name,), tuple(there), wrong)
