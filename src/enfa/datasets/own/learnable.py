"""What a split of a table must have before an epoch is spent: something to learn from, and to take a score of."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from enfa.datasets.benchmark import PARTS, Benchmark

__all__ = ["check_scored", "check_trained"]

ANSWERS = ("no", "yes")  # 0 and 1


def check_trained(path: Path, targets: Sequence[str], y: np.ndarray, classes: Sequence[str] | None) -> None:
    """Refuse targets of which the labels ``y`` of the training molecules show less than two answers or classes: such a model
    says the same of every molecule, and would be scored and predict as if it had learnt something. (Numbers:
    ``mean_and_std``.)"""
    names = ANSWERS if classes is None else classes
    for place, name in enumerate(targets):
        column = y if classes is not None else y[:, place]
        there = np.unique(column[~np.isnan(column)]).astype(int).tolist()
        if not there:
            kind = "a yes or a no" if classes is None else "a class"
            raise ValueError(f"{path}: Expected at least one training molecule with {kind} for {name!r}, got none")
        if len(there) == 1:
            kind = "a yes and a no" if classes is None else "at least two classes"
            raise ValueError(f"{path}: Expected {kind} among the training molecules for {name!r}, got {names[there[0]]!r} only")


def check_scored(path: Path, data: Benchmark) -> None:
    """ROC-AUC and average precision need a yes and a no among the molecules they are taken of."""
    if data.task != "binary" or data.metric == "accuracy":
        return
    for part, verb in zip(PARTS[1:], ("validate", "test")):
        y = data.labels[data.split()[part]]
        if not ((y == 1).any(axis=0) & (y == 0).any(axis=0)).any():
            raise ValueError(
                f"{path}: Expected a yes and a no among the {len(y)} molecule{'s' * (len(y) != 1)} to {verb} on, without which "
                f"{data.metric} is not defined, got one of the two: use another split, more molecules, or metric=accuracy"
            )
