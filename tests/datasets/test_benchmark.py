from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from enfa.datasets import Benchmark


def graphs(labels: list[Any], dtype: torch.dtype = torch.int64) -> list[Data]:
    edge_index = torch.tensor([[0, 1], [1, 0]])
    return [
        Data(x=torch.zeros(2, 1, dtype=torch.int64), edge_index=edge_index, y=torch.tensor([y], dtype=dtype)) for y in labels
    ]


def benchmark(labels: list[Any], **options: Any) -> Benchmark:
    binary = isinstance(labels[0], list) if labels else False
    settings: dict[str, Any] = {
        "name": "toy",
        "graphs": graphs(labels, torch.float32 if binary else torch.int64),
        "metric": "rocauc" if binary else "accuracy",
        "task": "binary" if binary else "multiclass",
        "num_outputs": len(labels[0]) if binary else 2,
        "in_channels": [1],
    }
    return Benchmark(**(settings | options))


def test_the_test_fold_doubles_as_validation_by_default() -> None:
    toy = benchmark([0, 1] * 50)
    tested = []
    for fold in range(10):
        parts = toy.split(fold, seed=1)
        assert np.array_equal(parts["valid"], parts["test"])
        assert sorted([*parts["train"], *parts["test"]]) == list(range(100))
        assert toy.labels[parts["test"]].sum() == 5
        tested += parts["test"].tolist()
    assert sorted(tested) == list(range(100))


def test_a_fold_can_be_held_out_for_validation() -> None:
    toy = benchmark([0, 1] * 50)
    parts, following = toy.split(9, validation="next"), toy.split(0)
    assert np.array_equal(parts["valid"], following["test"])
    assert sorted(np.concatenate(list(parts.values()))) == list(range(100))


def test_folds_without_a_class_to_stratify_by() -> None:
    several = benchmark([[0.0, 1.0], [1.0, float("nan")]] * 10)
    assert [len(several.split(fold)["test"]) for fold in range(10)] == [2] * 10
    single = benchmark([[0.0], [1.0], [float("nan")]] * 10)
    for fold in range(10):
        assert np.sort(single.labels[single.split(fold)["test"], 0])[:2].tolist() == [0, 1]


def test_an_official_split_is_the_only_fold() -> None:
    toy = benchmark([0, 1, 0], splits={"train": [0], "valid": [1], "test": [2]})
    assert toy.num_folds == 1
    assert {part: index.tolist() for part, index in toy.split().items()} == {
        "train": [0],
        "valid": [1],
        "test": [2],
    }
    toy.split()["test"][0] = 0
    assert toy.split()["test"].tolist() == [2], "a caller's change must not reach the benchmark"
    with pytest.raises(ValueError, match="toy has folds 0 to 0, got fold 1"):
        toy.split(1)


def test_labels_at_once() -> None:
    assert benchmark([0, 1, 1]).labels.tolist() == [0, 1, 1]
    assert benchmark([[0.0, 1.0]]).labels.shape == (1, 2)
    assert len(benchmark([0, 1, 1])) == 3


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ([], {}, "at least one graph, got none"),
        ([0, 1, 2], {}, r"graph 2 to have a class from 0 to 1 as label, got 2"),
        ([0, -1], {}, "graph 1 to have a class"),
        ([[0.0], [3.0]], {}, r"graph 1 to have 0, 1 or NaN \(not measured\) as label, got \[3.0\]"),
        ([[0.0, 1.0]], {"num_outputs": 3}, r"graph 0 to have y of shape \(1, 3\), got \(1, 2\)"),
        ([0, 1], {"metric": "f1"}, "expected metric to be in"),
        ([0, 1], {"metric": "ap"}, "multiclass task is accuracy"),
        ([0, 1], {"task": "ranking"}, "expected task to be in"),
        ([0, 1], {"task": "regression"}, "the metric of a regression task is one of"),
        ([0, 1], {"splits": {"train": [0], "test": [1]}}, "expected the splits"),
        ([0, 1], {"splits": {"train": [0], "valid": [], "test": [1]}}, "the split 'valid' is empty"),
        ([0, 1], {"splits": {"train": [0], "valid": [1], "test": [2]}}, "positions from 0 to 1, got 2 to 2"),
        (
            [0, 1],
            {"splits": {"train": [0], "valid": [1], "test": [0]}},
            "'train' and 'test' have graphs in common",
        ),
    ],
)
def test_refuses(labels: list[Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        benchmark(labels, **options)


def test_refuses_a_graph_without_label() -> None:
    unlabelled = graphs([0, 1])
    del unlabelled[1].y
    with pytest.raises(ValueError, match="graph 1 to have y"):
        benchmark([0, 1], graphs=unlabelled)


def test_refuses_folds_that_are_not_there() -> None:
    with pytest.raises(ValueError, match="toy has folds 0 to 9, got fold 10"):
        benchmark([0, 1] * 50).split(10)
    with pytest.raises(ValueError, match="'test' or 'next', got 'none'"):
        benchmark([0, 1] * 50).split(validation="none")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="needs at least 3 folds"):
        benchmark([0, 1] * 50, num_folds=2).split(validation="next")
