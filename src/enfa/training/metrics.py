"""What is known of a metric by its name: which way is better, and whether it is a share."""

from collections.abc import Callable, Sequence

import numpy as np

__all__ = ["NEAR", "best_of", "in_percent", "in_units", "labelled", "lower_is_better", "mode", "reached"]

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


def in_units(metric: str, std: Sequence[float] | None, targets: Sequence[str] | None) -> Callable[[float], str]:
    """What a score of standardised numbers is in the units of the data, in words.

    >>> in_units("mae", [2.0], ["logp"])(0.25)
    ' standard deviations, which is 0.5 in units of logp'
    >>> in_units("mse", [2.0], None)(0.25)
    ' squared standard deviations, which is 1 in units of y²'
    """
    if std is None or metric not in LOWER:
        return lambda score: ""
    of = "standard deviations" if metric == "mae" else "squared standard deviations"
    if len(std) > 1:
        return lambda score: f" {of}"
    power, name = 1 if metric == "mae" else 2, targets[0] if targets else "y"
    return lambda score: f" {of}, which is {score * std[0] ** power:.4g} in units of {name}" + "²" * (power - 1)


def labelled(metric: str, std: Sequence[float] | None) -> str:
    """A metric's name in a table, whose numbers are as they were computed.

    >>> labelled("mae", [2.0]), labelled("mae", None), labelled("r2", [2.0])
    ('mae (deviations)', 'mae', 'r2')
    """
    if std is None or metric not in LOWER:
        return metric
    return f"{metric} ({'squared ' * (metric == 'mse')}deviations)"


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
