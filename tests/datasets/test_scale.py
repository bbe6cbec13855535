import numpy as np
import pytest

from enfa.datasets.scale import mean_and_std


def test_blanks_count_nowhere() -> None:
    y = np.array([[1.0, np.nan], [3.0, 5.0], [np.nan, 1.0]])
    mean, std = mean_and_std("f", ["a", "b"], y, "graph")
    assert mean.tolist() == [2.0, 3.0] and std.tolist() == [1.0, 2.0]


def test_numbers_without_a_deviation_are_refused() -> None:
    blank, same = np.full(4, np.nan), np.array([0.1, 0.1, 0.1, np.nan])
    assert np.nanstd(same) > 0, "by rounding: what it is divided by would be noise"
    for column, said in ((blank, "at least one training node with a number for 'b', got none"),
                         (same, "two different numbers for 'b' among training nodes, got 0.1 only")):  # fmt: skip
        with pytest.raises(ValueError, match=f"^f: Expected {said}$"):
            mean_and_std("f", ["a", "b"], np.stack([np.arange(4.0), column], 1), "node")


def test_numbers_too_large_for_a_deviation_are_refused() -> None:
    for most in (1e200, np.inf):
        with pytest.raises(
            ValueError, match=r"f: Expected numbers for 'a' whose squares are finite, .* got up to (1e\+200|inf)"
        ):
            mean_and_std("f", ["a"], np.array([[0.5], [most]]), "graph")


def test_the_smallest_numbers_are_not_divided_by_zero() -> None:
    assert mean_and_std("f", ["a"], np.array([[0.0], [1e-200]]), "graph")[1].tolist() == [1.0]
