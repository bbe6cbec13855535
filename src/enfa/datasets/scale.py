"""Mean and deviation of numbers to learn from."""

from collections.abc import Sequence

import numpy as np

__all__ = ["mean_and_std"]


def mean_and_std(name: str, targets: Sequence[str], y: np.ndarray, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Of the labels to train on, a number for each column; a deviation of 1 where all are the same. ``what``: has a label.

    >>> mean_and_std("tiny", ["a"], np.array([[1.0], [np.nan], [3.0]]), "graph")
    (array([2.]), array([1.]))
    """
    for place, target in enumerate(targets):
        if np.isnan(y[:, place]).all():
            raise ValueError(f"{name}: Expected at least one training {what} with a number for {target!r}, got none")
    y = y.astype(np.float64)
    std = np.nanstd(y, axis=0)
    return np.nanmean(y, axis=0), np.where(std > 0, std, 1.0)
