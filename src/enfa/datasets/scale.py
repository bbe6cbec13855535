"""Mean and deviation of numbers to learn from."""

from collections.abc import Sequence

import numpy as np

__all__ = ["mean_and_std"]


def mean_and_std(name: str, targets: Sequence[str], y: np.ndarray, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Of the labels to train on, a number for each column. ``what``: has a label. Numbers that are all the same are refused:
    they have no deviation to divide by, and a model of them has nothing to learn.

    >>> mean_and_std("tiny", ["a"], np.array([[1.0], [np.nan], [3.0]]), "graph")
    (array([2.]), array([1.]))
    """
    for place, target in enumerate(targets):
        if np.isnan(y[:, place]).all():
            raise ValueError(f"{name}: Expected at least one training {what} with a number for {target!r}, got none")
        least = np.nanmin(y[:, place])
        if least == np.nanmax(y[:, place]):  # not the deviation, which rounding makes a little more than 0
            raise ValueError(
                f"{name}: Expected two different numbers for {target!r} among training {what}s, got {least:.6g} only"
            )
    y = y.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        std = np.nanstd(y, axis=0)
    for target, found, most in zip(targets, std, np.nanmax(np.abs(y), axis=0)):
        if not np.isfinite(found):  # divided by it, all numbers would be the same
            raise ValueError(
                f"{name}: Expected numbers for {target!r} whose squares are finite, to standardise them, got up to {most:.3g}"
            )
    return np.nanmean(y, axis=0), np.where(std > 0, std, 1.0)  # squares of the smallest numbers are 0
