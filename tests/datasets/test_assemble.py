import warnings
from typing import Any

import numpy as np
import pytest
import torch

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


def test_one_class_is_told_of_where_nothing_says_that_there_are_more() -> None:
    """It has one output, of which a model would learn nothing; another list of graphs may have others."""
    told = r"^toy: all labels are of one class, 3, so there is nothing to learn: give num_outputs=N, and classes from 0"
    with pytest.warns(UserWarning, match=told):
        assert assemble("toy", flat(CATEGORIES), np.array([3, 3])).num_outputs == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert assemble("toy", flat(CATEGORIES), np.array([1, 1]), num_outputs=2).labels.tolist() == [1, 1]


def test_two_dimensional_labels_are_tasks() -> None:
    toy = assemble("toy", flat(CATEGORIES), np.array([[0, 1, 1], [1, 0, 0]], dtype=np.int8))
    assert (toy.task, toy.metric, toy.num_outputs) == ("binary", "rocauc", 3)
    assert toy.graphs[0].y.dtype.is_floating_point


def test_numbers_to_predict() -> None:
    toy = assemble("toy", flat(CATEGORIES), np.array([0.5, 3.0]))
    assert (toy.task, toy.metric, toy.num_outputs) == ("regression", "mae", 1)
    assert toy.graphs[1].y.tolist() == [[3.0]]
    toy = assemble("toy", flat(CATEGORIES), np.array([[0, 1], [1, 0]]), metric="r2", targets=("a", "b"))
    assert (toy.task, toy.metric, toy.num_outputs, toy.targets) == ("regression", "r2", 2, ("a", "b"))


def test_numbers_of_nodes_in_units_of_their_own() -> None:
    y, mean, std = np.array([[1, 0], [3, 4], [5, 8]]), np.array([1.0, 4.0]), np.array([2.0, 4.0])
    toy = assemble("toy", flat(CATEGORIES), y, level="node", mean=mean, std=std)
    assert (toy.task, toy.level, toy.mean, toy.std) == ("regression", "node", (1.0, 4.0), (2.0, 4.0))
    assert torch.cat([graph.y for graph in toy.graphs]).tolist() == [[0, -1], [1, 0], [2, 1]]
    assert [len(graph.y) for graph in toy.graphs] == [graph.num_nodes for graph in toy.graphs]


def test_what_is_given_counts() -> None:
    toy = assemble("toy", flat(CATEGORIES), np.array([0, 1]), num_outputs=4, in_channels=(9, 5))
    assert (toy.num_outputs, toy.in_channels) == (4, [9, 5])


@pytest.mark.parametrize(
    ("x", "y", "options", "message"),
    [
        (CATEGORIES, CLASSES, {"num_outputs": 4}, "graph 0 to have a class from 0 to 3 as label, got 7"),
        (CATEGORIES, CLASSES[:1], {}, "2 graphs have 1 labels; is a file cut short"),
        (CATEGORIES, np.array([0.0, 1.0]), {}, "classes to be integers, got float64; for numbers .* metric='mae'"),
        (CATEGORIES, np.array(["a", "b"]), {}, r"y to be integers of shape \[G\]"),
        (CATEGORIES, np.zeros((2, 0)), {}, r"numbers of shape \[G, T\] .* of shape \(2, 0\)"),
        (CATEGORIES, np.zeros((2, 3)), {"metric": "mae", "num_outputs": 2}, "y to have 2 columns, got 3"),
        (CATEGORIES, np.array([0.5, np.inf]), {}, r"graph 1 to have finite numbers or NaN .* got \[inf\]"),
        (CATEGORIES, np.zeros((2, 1)), {"level": "node"}, "3 nodes have 2 labels; is a file cut short"),
        (CATEGORIES, np.array([[0.0], [1.0], [np.inf]]), {"level": "node"}, "graph 1 to have finite numbers"),
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
