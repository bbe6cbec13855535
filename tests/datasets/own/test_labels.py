import numpy as np
import pytest

from enfa.datasets.own.labels import Labels, read_labels

nan = float("nan")


def same(labels: Labels, task: str, y: object) -> bool:
    return labels.task == task and np.array_equal(labels.y, np.array(y), equal_nan=labels.task != "multiclass")


def test_answers() -> None:
    assert same(
        read_labels({"a": ["1", "0.0", "", "Yes", "FALSE", "NaN", "n/a"]}), "binary", [[1], [0], [nan], [1], [0], [nan], [nan]]
    )
    tasks = read_labels({"a": ["1", "", "", "0"], "b": ["0", "1", "NA", ""]})
    assert same(tasks, "binary", [[1, 0], [nan, 1], [nan, nan], [0, nan]]) and tasks.targets == ("a", "b")
    assert tasks.measured.tolist() == [True, True, False, True]


def test_classes() -> None:
    labels = read_labels({"colour": ["red", "", "blue", "green", "red"]})
    assert same(labels, "multiclass", [2, -1, 0, 1, 2]) and labels.classes == ("blue", "green", "red")
    assert labels.measured.tolist() == [True, False, True, True, True]
    numbered = read_labels({"kind": ["10", "9", "x", "10"]}, "classification")
    assert numbered.classes == ("9", "10"), "numbers are ordered as numbers"
    assert numbered.wrong == [(2, "Expected kind to be a number or blank, like most of the column, got 'x'")]
    assert read_labels({"kind": ["yes", "no", "unsure"]}).classes == ("no", "unsure", "yes")


def test_one_number_is_one_class_however_it_is_written() -> None:
    labels = read_labels({"kind": ["2.0", "10", "2", "", "3", "1e1", "2.00"]}, "classification")
    assert labels.classes == ("2", "3", "10") and same(labels, "multiclass", [0, 2, 0, -1, 1, 2, 0]) and not labels.wrong
    assert read_labels({"kind": ["2.0", "x", "2", "y", "z"]}).classes == ("2", "2.0", "x", "y", "z"), "names stay as they are"


def test_numbers() -> None:
    assert same(read_labels({"a": ["0.5", "-1e3", "null"]}), "regression", [[0.5], [-1000], [nan]])
    assert same(read_labels({"a": ["0", "1"]}, "regression"), "regression", [[0], [1]])
    many = read_labels({"a": [str(k) for k in range(11)]})
    assert many.task == "regression", "more kinds of whole numbers than classes would have"


def test_labels_that_are_none_are_told_by_row() -> None:
    found = read_labels({"a": ["0.5", "1.5", ">10", "inf", ""]})
    assert found.wrong == [(row, f"Expected a to be a number or blank, got {text!r}") for row, text in ((2, ">10"), (3, "inf"))]
    assert read_labels({"a": ["1", "0", "maybe"]}).wrong == [(2, "Expected a to be yes or no (1 or 0) or blank, got 'maybe'")]


@pytest.mark.parametrize(
    ("columns", "task", "message"),
    [
        ({"n": ["0", "1", "2"]}, "auto", "the few whole numbers in 'n' may be classes or counts"),
        ({"a": ["0", "1"], "b": ["0.5", "0.25"]}, "auto", "yes/no in 'a' and numbers in 'b'"),
        ({"a": ["0", "1"], "b": ["red", "blue"]}, "auto", "got other values in 'b': train it by itself"),
        ({"a": ["0", "1"], "b": ["1", "2"]}, "classification", "got other values in 'b'"),
        ({"a": ["red", "blue"]}, "regression", "numbers in the column 'a' for task regression, got words"),
        ({"a": ["", "NA"]}, "auto", "at least one label in the column 'a', got blanks only"),
        ({"a": ["1", "1", ""]}, "auto", r"at least two different values to learn from, got \['1'\]"),
        ({"a": ["yes", "Yes"]}, "auto", r"at least two different values to learn from, got \['Yes', 'yes'\]"),
        ({"a": ["1", "0", ""], "b": ["1", "", "1"]}, "auto", r"'b' to have at least two different values .* got \['1'\]"),
        ({"a": ["0.5", "2"], "b": ["2.5", "2.50"]}, "auto", r"'b' to have at least two different values .* '2.50'\]"),
        ({"a": ["yes", "no", ""]}, "regression", "numbers in the column 'a' for task regression, got 'yes'"),
        ({"a": ["-1,5", "2,25", "3"]}, "auto", "numbers with a decimal point in the column 'a', got '-1,5'"),
        ({"a": ["-1,5", "2,25", "3"]}, "regression", "numbers with a decimal point in the column 'a', got '-1,5'"),
        ({"a": [f"name {k}" for k in range(101)]}, "auto", "2 to 100 classes in the column 'a', got 101"),
        ({"a": ["1", "0"]}, "ranking", "task to be auto, classification or regression, got 'ranking'"),
    ],
)
def test_refuses(columns: dict[str, list[str]], task: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_labels(columns, task)  # type: ignore[arg-type]
