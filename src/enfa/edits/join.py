"""Adding the edits of graphs to those of others."""

import numpy as np

from enfa.edits.edits import Edits
from enfa.graphs import GraphSet

__all__ = ["join_edits"]


def join_edits(first: Edits, graphs: GraphSet, second: Edits) -> Edits:
    """Those of both; ``first`` are of ``graphs``, and the marks of ``second`` are numbered as theirs, new ones behind."""

    def pointers(name: str) -> np.ndarray:
        one, other = getattr(first, name), getattr(second, name)
        return np.concatenate([one, other[1:] + one[-1]])

    def both(name: str, shift: int = 0) -> np.ndarray:
        return np.concatenate([getattr(first, name), getattr(second, name) + shift])

    keeps = None if first.keeps is None and second.keeps is None else np.concatenate([first.kept, second.kept])
    return Edits(
        pointers("sub_ptr"), pointers("node_ptr"), both("node", graphs.num_nodes), both("node_value"), pointers("edge_ptr"),
        both("edge", graphs.num_edges), both("edge_value"), second.marks, second.edge_marks, keeps,
        _roots(first, second, graphs.num_nodes),
    )  # fmt: skip


def _roots(first: Edits, second: Edits, nodes: int) -> np.ndarray | None:
    roots = [edits.root for edits in (first, second) if edits.root is not None]
    if not roots:
        return None
    if roots[0].shape[1] != roots[-1].shape[1]:
        raise ValueError(f"Expected {roots[0].shape[1]} root(s) a subgraph, as compiled, got {roots[-1].shape[1]}")
    none = [np.full((edits.num_subgraphs, roots[0].shape[1]), -1, np.int64) for edits in (first, second)]
    one = none[0] if first.root is None else first.root
    other = none[1] if second.root is None else np.where(second.root < 0, -1, second.root + nodes)
    return np.concatenate([one, other])
