from typing import Any

import numpy as np
import pytest
import torch

from enfa.datasets.flat import FlatGraphs


def flat(**changes: Any) -> FlatGraphs:
    """A triangle with a self-loop, a graph without nodes, one of one node, one of two; edges stand once."""
    arrays: dict[str, Any] = {
        "source": "toy",
        "num_nodes": np.array([3, 0, 1, 2], dtype=np.int32),
        "num_edges": np.array([4, 0, 0, 1], dtype=np.int32),
        "edges": np.array([[0, 1], [1, 2], [2, 0], [1, 1], [1, 0]], dtype=np.uint16),
        "x": np.array([[1.5], [2.5], [3.5], [4.5], [5.5], [6.5]]),
        "edge_attr": np.array([10, 20, 30, 40, 50], dtype=np.uint8),
    }
    return FlatGraphs(**(arrays | changes))


def test_degenerate_graphs_come_out_whole() -> None:
    triangle, none, single, pair = flat().graphs(torch.arange(4))
    assert triangle.edge_index.tolist() == [[0, 1, 2, 1], [1, 2, 0, 1]]
    assert triangle.edge_attr.tolist() == [[10], [20], [30], [40]]
    assert (none.num_nodes, none.num_edges, none.edge_index.shape) == (0, 0, (2, 0))
    assert (single.num_nodes, single.num_edges, single.edge_attr.shape) == (1, 0, (0, 1))
    assert pair.x.tolist() == [[5.5], [6.5]]
    assert pair.edge_index.tolist() == [[1], [0]]
    assert [g.y.tolist() for g in (triangle, none, single, pair)] == [[0], [1], [2], [3]]
    assert (triangle.x.dtype, triangle.edge_index.dtype, triangle.edge_attr.dtype) == (
        torch.float32,
        torch.int64,
        torch.int64,
    )


def test_reverses_follow_their_edges_and_self_loops_stand_once() -> None:
    both = flat().with_reversed()
    assert both.num_edges.tolist() == [7, 0, 0, 2]
    triangle, _, _, pair = both.graphs(torch.arange(4))
    assert triangle.edge_index.t().tolist() == [[0, 1], [1, 0], [1, 2], [2, 1], [2, 0], [0, 2], [1, 1]]
    assert triangle.edge_attr.flatten().tolist() == [10, 10, 20, 20, 30, 30, 40]
    assert pair.edge_index.t().tolist() == [[1, 0], [0, 1]]
    assert both.share_reversed == 1


def test_share_of_edges_that_have_their_reverse() -> None:
    assert flat().share_reversed == 0
    half = flat(edges=np.array([[0, 1], [1, 0], [2, 0], [1, 1], [1, 0]]))
    assert half.share_reversed == 0.5
    no_edges = flat(num_edges=np.zeros(4, dtype=int), edges=np.zeros((0, 2), dtype=int), edge_attr=None)
    assert no_edges.share_reversed == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_nodes": np.array([3, 0, 1])}, "num_nodes counts 3 graphs, num_edges 4; is a file cut short"),
        (
            {"num_nodes": np.array([3, 0, 1, 3])},
            "the graphs have 7 nodes, but x has 6 rows; is a file cut short",
        ),
        ({"num_nodes": np.array([3.0, 0, 1, 2])}, "num_nodes to hold integers, got float64"),
        ({"num_nodes": np.array([5, -1, 1, 1])}, "num_nodes to be a list of counts"),
        ({"num_edges": np.array([4, 0, 0, 2])}, "the graphs have 6 edges, but edges has 5 rows"),
        ({"edge_attr": np.zeros((4, 3))}, "the graphs have 5 edges, but edge_attr has 4 rows"),
        ({"edges": np.zeros((5, 3), dtype=int)}, r"edges to have shape \[M, 2\], got \(5, 3\)"),
        ({"edges": np.array([[0, 1]] * 4 + [[2, 0]])}, r"graph 3 has nodes 0 to 1, but an edge \(2, 0\)"),
        ({"edges": np.array([[0, -1]] * 5)}, r"graph 0 has nodes 0 to 2, but an edge \(0, -1\)"),
        ({"x": np.array(["a"] * 6)}, "x to be a table of numbers"),
        ({"x": np.zeros((6, 1, 1))}, "x to be a table of numbers"),
    ],
)
def test_refuses(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^toy: .*{message}"):
        flat(**changes)
