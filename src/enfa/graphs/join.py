"""Adding graphs to graphs whose features have been numbered."""

from dataclasses import replace

import numpy as np

from enfa.graphs.graphset import GraphSet
from enfa.graphs.kinds import distinct_rows

__all__ = ["added_rows", "join", "renumbered"]


def added_rows(old: np.ndarray, new: np.ndarray, what: str) -> tuple[np.ndarray, np.ndarray]:
    """``(rows, place)``: the old distinct rows with the unknown ones of ``new`` behind, and where each new row is."""
    if old.shape[1:] != new.shape[1:] or old.dtype != new.dtype:
        raise ValueError(
            f"Expected '{what}' with {old.shape[1]} columns of {old.dtype}, as compiled, "
            f"got {new.shape[1]} columns of {new.dtype}"
        )
    kind, _ = distinct_rows(np.concatenate([old, new]))
    known = np.full(len(old) + len(new), -1, np.int64)
    known[kind[: len(old)]] = np.arange(len(old))
    fresh = known[kind[len(old) :]] < 0
    place = known[kind[len(old) :]]
    place[fresh] = len(old) + np.arange(int(fresh.sum()))
    return np.concatenate([old, new[fresh]]), place


def renumbered(graphs: GraphSet, x: np.ndarray, edge_attr: np.ndarray | None, categories: np.ndarray) -> GraphSet:
    """The same graphs with their kinds numbered as in ``x`` and ``edge_attr``, to which new rows are added."""
    if len(categories) != len(graphs.categories):
        raise ValueError(
            f"Expected graphs with {len(categories)} columns of 'x_cat', as compiled, got {len(graphs.categories)}"
        )
    if (edge_attr is None) != (graphs.edge_attr is None):
        raise ValueError(f"Expected graphs {'without' if edge_attr is None else 'with'} 'edge_attr', as compiled")
    x, place = added_rows(x, graphs.x, "x")
    largest = np.maximum(categories, graphs.categories)
    result = replace(graphs, x=x, node_kind=place[graphs.node_kind], categories=largest)
    if edge_attr is not None and graphs.edge_attr is not None:
        edge_attr, place = added_rows(edge_attr, graphs.edge_attr, "edge_attr")
        result = replace(result, edge_attr=edge_attr, edge_kind=place[graphs.edge_kind])
    return result


def join(first: GraphSet, second: GraphSet) -> GraphSet:
    """The graphs of both; ``second`` has been renumbered to ``first``."""

    def both(name: str, shift: int = 0) -> np.ndarray:
        return np.concatenate([getattr(first, name), getattr(second, name) + shift])

    return GraphSet(
        np.concatenate([first.node_ptr, second.node_ptr[1:] + first.num_nodes]),
        both("src", first.num_nodes), both("dst", first.num_nodes), both("order", first.num_edges),
        both("node_kind"), second.x, both("edge_kind"), second.edge_attr, second.categories,
    )  # fmt: skip
