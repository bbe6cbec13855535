from typing import Any

import numpy as np
import pytest

from enfa.datasets.assemble import assemble
from enfa.datasets.flat import FlatGraphs


def flat(x: Any, edge_attr: Any = None) -> FlatGraphs:
    return FlatGraphs(
        source="toy",
        num_nodes=np.array([1, 2]),
        num_edges=np.array([0, 2]),
        edges=np.array([[0, 1], [1, 0]]),
        x=np.array(x),
        edge_attr=None if edge_attr is None else np.array(edge_attr),
    )


CATEGORIES = [[0, 4], [2, 0], [1, 1]]
CLASSES = np.array([7, 3])


def test_reads_off_the_data_what_is_not_given() -> None:
    toy = assemble("toy", flat(CATEGORIES, edge_attr=[[0.5], [1.5]]), CLASSES)
    assert (toy.task, toy.metric, toy.num_outputs) == ("multiclass", "accuracy", 2)
    assert toy.labels.tolist() == [1, 0], "classes are numbered in the order of their values"
    assert (toy.in_channels, toy.edge_channels) == ([3, 5], 1)


def test_two_dimensional_labels_are_tasks() -> None:
    toy = assemble("toy", flat(CATEGORIES), np.array([[0, 1, 1], [1, 0, 0]], dtype=np.int8))
    assert (toy.task, toy.metric, toy.num_outputs) == ("binary", "rocauc", 3)
    assert toy.graphs[0].y.dtype.is_floating_point


def test_what_is_given_counts() -> None:
    toy = assemble("toy", flat(CATEGORIES), np.array([0, 1]), num_outputs=4, in_channels=(9, 5))
    assert (toy.num_outputs, toy.in_channels) == (4, [9, 5])


@pytest.mark.parametrize(
    ("x", "y", "options", "message"),
    [
        (CATEGORIES, CLASSES, {"num_outputs": 4}, "graph 0 to have a class from 0 to 3 as label, got 7"),
        (CATEGORIES, CLASSES[:1], {}, "2 graphs have 1 labels; is a file cut short"),
        (CATEGORIES, np.array([0.5, 1.5]), {}, r"y to be integers of shape \[G\]"),
        (CATEGORIES, np.array([[0, 1], [1, 0]]), {"num_outputs": 3}, "y to have 3 columns, got 2"),
        (CATEGORIES, CLASSES, {"in_channels": [3, 4]}, "column 1 of x has 4 categories, got number 4"),
        (CATEGORIES, CLASSES, {"in_channels": [3]}, "categories of each of 2 columns"),
        (CATEGORIES, CLASSES, {"in_channels": 2}, "categories of each of 2 columns"),
        ([[-1], [0], [0]], CLASSES, {}, "categories in x to count from 0, got -1"),
        ([[0.5], [0.0], [0.0]], CLASSES, {"in_channels": [3]}, "x has 1 float columns"),
    ],
)
def test_refuses(x: Any, y: np.ndarray, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^toy: .*{message}"):
        assemble("toy", flat(x), y, **options)
