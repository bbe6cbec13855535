"""What is known of a metric by its name: which way is better, and whether it is a share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["NEAR", "best_of", "in_percent", "lower_is_better", "mode", "reached"]

LOWER = ("mae", "mse")
SHARES = ("accuracy", "rocauc", "ap")
NEAR = 1e-6  # a score has been a float32 on its way


def lower_is_better(metric: str) -> bool:
    return metric in LOWER


def mode(metric: str) -> str:
    """As Lightning and PyTorch call it: "min" or "max"."""
    return "min" if lower_is_better(metric) else "max"


def in_percent(metric: str) -> bool:
    """Whether tables show a hundred times the score."""
    return metric in SHARES


def best_of(metric: str, scores: Sequence[float] | np.ndarray) -> int:
    """The first position of the best score.

    >>> best_of("mae", [0.5, 0.2, 0.2]), best_of("r2", [0.5, 0.2, 0.2])
    (1, 0)
    """
    values = np.asarray(scores, dtype=np.float64)
    return int(values.argmin() if lower_is_better(metric) else values.argmax())


def reached(metric: str, score: float, target: float) -> bool:
    """Whether a score is as good as the one to stop at."""
    return score <= target + NEAR if lower_is_better(metric) else score >= target - NEAR
