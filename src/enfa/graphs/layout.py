"""From arrays of many graphs, laid end to end, to a :class:`GraphSet`."""

import numpy as np

from enfa.graphs.graphset import GraphSet
from enfa.graphs.kinds import distinct_rows

__all__ = ["check_arrays", "laid_out"]


def laid_out(
    num_nodes: np.ndarray,
    num_edges: np.ndarray,
    ends: np.ndarray,
    x: np.ndarray,
    edge_attr: np.ndarray | None,
    categories: np.ndarray | None = None,
    first: int = 0,
) -> GraphSet:
    """What has been checked, numbered through.

    ``num_nodes`` and ``num_edges`` are those of each graph, ``ends`` [2, E] sources and targets counted from 0 in each graph,
    ``x`` [N, F] and ``edge_attr`` [E, FE] their features; the rest as in :class:`GraphSet`.
    """
    node_ptr = np.concatenate([[0], np.cumsum(num_nodes)]).astype(np.int64)
    both = ends.astype(np.int64) + np.repeat(node_ptr[:-1], num_edges)
    order = np.argsort(both[1], kind="stable")
    node_kind, rows = distinct_rows(x)
    edge_kind, edge_rows = np.zeros(both.shape[1], np.int64), None
    if edge_attr is not None:
        edge_kind, edge_rows = distinct_rows(edge_attr)
    return GraphSet(
        node_ptr, both[0][order], both[1][order], order, node_kind, rows, edge_kind[order], edge_rows,
        np.empty(0, np.int64) if categories is None else categories, first,
    )  # fmt: skip


def check_arrays(name: str, array: np.ndarray, counts: np.ndarray, first: int = 0) -> np.ndarray:
    """Features of many graphs, ``counts[g]`` rows for graph g: finite numbers, or categories from 0 on."""
    floats = array.dtype.kind == "f"
    wrong = ~np.isfinite(array) if floats else array < 0
    if wrong.any():
        after = np.cumsum(counts)
        graph = int(np.searchsorted(after, int(np.argmax(wrong.any(axis=1))), side="right"))
        own = array[after[graph] - counts[graph] : after[graph]]
        got = f"be finite, got NaN or inf (shape {list(own.shape)})" if floats else f"be >= 0, got {own.min()}"
        raise ValueError(f"graph {first + graph}: Expected '{name}' {'' if floats else 'categorical values '}to {got}")
    return array + 0.0 if floats else array  # -0.0 and 0.0 are one value
