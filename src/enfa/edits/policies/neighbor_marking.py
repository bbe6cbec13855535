"""Neighbour marking: one subgraph per node and neighbour of it, on the node's ego net, in which both are told apart."""

from __future__ import annotations

from itertools import product

import numpy as np

from enfa.edits.edits import Edits
from enfa.edits.induced import induced
from enfa.edits.policy import Policy
from enfa.graphs import GraphSet
from enfa.graphs.balls import Balls, balls, distances_within
from enfa.graphs.graphset import ranges
from enfa.graphs.numbers import whole

__all__ = ["NeighborMarking"]


class NeighborMarking(Policy):
    """A subgraph for every node i and neighbour j of it: i's ego net of ``hops`` hops, with i as its root.

    The policy of I²-GNN: Huang et al., "Boosting the Cycle Counting Power of Graph Neural Networks with I²-GNNs", ICLR 2023.

    - ``mark=True``: i and j carry a mark each, of two channels (the authors' "hop" labels, for counting).
    - ``mark="distances"``: every node carries its hop distances to i and to j, both within the ego net: ``hops + 1`` channels
      for the one, ``hops + 3`` for the other, the last of which stands for "cannot reach it" (the first of the authors' "spd"
      labels, for molecules).

    A node without neighbours has one subgraph, in which it alone is marked, as in the authors' code; with distances, nothing
    there can reach a j. Neighbours are the nodes with an edge to i, each once where edges are parallel; a loop makes none.
    """

    def __init__(self, hops: int, mark: bool | str = True) -> None:
        if mark not in (True, "distances"):
            raise ValueError(f"Expected mark to be True or 'distances', got {mark!r}")
        self.hops, self.mark = whole("hops", hops, 1), mark

    @property
    def marks(self) -> tuple[tuple[float, ...], ...]:  # type: ignore[override]
        if self.mark != "distances":
            return (0.0, 0.0), (1.0, 0.0), (0.0, 1.0)
        of_i, of_j = np.eye(self.hops + 1).tolist(), np.eye(self.hops + 3).tolist()
        return (0.0,) * (2 * self.hops + 4), *((*i, *j) for i, j in product(of_i, of_j))

    def edits(self, graphs: GraphSet) -> Edits:
        root, other = self._neighbors(graphs)
        ego = balls(graphs, np.arange(graphs.num_nodes + 1), np.arange(graphs.num_nodes), self.hops)
        size = np.diff(ego.ptr)[root]
        entry = ranges(ego.ptr[root], size)
        near = Balls(np.concatenate([[0], np.cumsum(size)]), ego.node[entry], ego.hop[entry])
        if self.mark == "distances":
            value = 1 + near.hop.astype(np.int64) * (self.hops + 3) + distances_within(graphs, near, other, self.hops + 2)
        else:
            value = np.where(near.hop == 0, 1, 2 * (near.node == np.repeat(other, size)))
        node, keeps = induced(graphs, graphs.graph[root], near, value)
        per_graph = np.bincount(graphs.graph[root], minlength=graphs.num_graphs)
        return Edits.build(per_graph, node, marks=self.marks, keeps=keeps, root=root)

    @staticmethod
    def _neighbors(graphs: GraphSet) -> tuple[np.ndarray, np.ndarray]:
        """``(i, j)`` of every subgraph, j = -1 where i has no neighbour."""
        there = graphs.src != graphs.dst
        both = np.unique(np.stack([graphs.dst[there], graphs.src[there]], axis=1), axis=0)
        alone = np.setdiff1d(np.arange(graphs.num_nodes), both[:, 0])
        root, other = np.append(both[:, 0], alone), np.append(both[:, 1], np.full_like(alone, -1))
        order = np.argsort(root, kind="stable")
        return root[order], other[order]
