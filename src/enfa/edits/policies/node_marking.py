"""Node marking: one subgraph per node, in which that node carries a mark."""

from __future__ import annotations

import numpy as np

from enfa.edits.edits import Edits
from enfa.edits.policy import Policy
from enfa.graphs import GraphSet
from enfa.graphs.balls import balls
from enfa.graphs.numbers import whole

__all__ = ["NodeMarking", "one_hot"]


def one_hot(values: int) -> tuple[tuple[float, ...], ...]:
    """Mark tables in which every mark has a channel, the last for mark 0: "far"."""
    eye = np.eye(values)
    return tuple(tuple(row) for row in eye[[values - 1, *range(values - 1)]].tolist())


class NodeMarking(Policy):
    """Subgraph r of a graph is the graph itself with node r marked: cat(X, I_r) in the paper.

    ``distances=K`` labels every node by its hop distance to the root instead: 0 to K, one channel each, and one more
    channel, "far", for all beyond, which is what nodes of the unedited graph carry. A model needs
    ``mark_channels=K + 2`` then.
    """

    def __init__(self, distances: int | None = None) -> None:
        self.distances = None if distances is None else whole("distances", distances, 0)

    @property
    def marks(self) -> tuple[tuple[float, ...], ...]:  # type: ignore[override]
        return ((0.0,), (1.0,)) if self.distances is None else one_hot(self.distances + 2)

    def edits(self, graphs: GraphSet) -> Edits:
        nodes = np.arange(graphs.num_nodes)
        one = np.ones_like(nodes)
        mark = one, nodes, one
        if self.distances is not None:
            near = balls(graphs, np.arange(graphs.num_nodes + 1), nodes, self.distances)
            mark = np.diff(near.ptr), near.node.astype(np.int64), near.hop.astype(np.int64) + 1
        return Edits.build(np.diff(graphs.node_ptr), node=mark, marks=self.marks, root=nodes)
