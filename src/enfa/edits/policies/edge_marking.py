"""Edge marking: one subgraph per undirected edge, in which that edge carries an extra feature."""

from __future__ import annotations

import numpy as np

from enfa.edits.edits import Edits
from enfa.edits.policies.edge_deletion import undirected_edges
from enfa.edits.policies.node_marking import one_hot
from enfa.edits.policy import Policy
from enfa.graphs import GraphSet
from enfa.graphs.balls import Balls, balls
from enfa.graphs.kinds import distinct_rows
from enfa.graphs.names import unknown
from enfa.graphs.numbers import whole

__all__ = ["EdgeMarking"]

STRUCTURES = ("degrees", "distances")


class EdgeMarking(Policy):
    """Subgraph r of a graph is the graph itself with its undirected edge r marked, in both directions.

    Only a conv that reads edge attributes can see the mark; others are refused. ``structure`` adds to it:

    - None: the plain mark, one channel.
    - ``"degrees"``: the edge also carries the degree histogram of the nodes within ``hops`` of it: how many have
      degree 0, 1, 2-3, 4-7, …, in ``bins`` channels, the last of which takes all larger ones. Every distinct
      histogram of the dataset is one mark.
    - ``"distances"``: every node within ``hops`` of the edge is marked, too, with its distances to the two ends, of
      which the second is the first or one more; 2 (hops + 1) node channels, and one for "far".

    The ends of the edge are the roots of the subgraph. Parallel edges count each; a graph without edges has one
    subgraph: itself.
    """

    def __init__(self, structure: str | None = None, hops: int = 1, bins: int = 6) -> None:
        if structure is not None and structure not in STRUCTURES:
            raise unknown("structure", structure, ("None", *STRUCTURES))
        self.structure, self.hops, self.bins = structure, whole("hops", hops, 0), whole("bins", bins, 1)

    @property
    def marks(self) -> tuple[tuple[float, ...], ...]:  # type: ignore[override]
        return one_hot(2 * self.hops + 3) if self.structure == "distances" else ((0.0,),)

    @property
    def edge_marks(self) -> tuple[tuple[float, ...], ...]:  # type: ignore[override]
        """The plain mark; histograms come with the graphs, behind it."""
        more = (0.0,) * (self.bins if self.structure == "degrees" else 0)
        return (0.0, *more), (1.0, *more)

    def edits(self, graphs: GraphSet) -> Edits:
        per_graph, ends, counts, both = undirected_edges(graphs, repr(self))
        value, table, node = np.ones(len(ends), np.int64), np.array(self.edge_marks, np.float32), None
        if self.structure is not None:
            near = balls(graphs, 2 * np.arange(len(ends) + 1), ends.reshape(-1), self.hops)
            if self.structure == "degrees":
                kind, rows = distinct_rows(self._histograms(graphs, near))
                value, table = kind + 1, np.concatenate([table[:1], np.insert(rows, 0, 1.0, axis=1)])
            else:
                node = np.diff(near.ptr), near.node.astype(np.int64), 1 + self._distances(graphs, near, ends)
        return Edits.build(
            per_graph,
            node=node,
            edge=(counts, both, np.repeat(value, counts)),
            marks=self.marks,
            edge_marks=table,
            root=ends,
        )

    def _histograms(self, graphs: GraphSet, near: Balls) -> np.ndarray:
        """float32 [edges, bins]."""
        degree = np.diff(graphs.in_ptr)[near.node]
        which = np.minimum(np.frexp(degree.astype(np.float64))[1], self.bins - 1)
        edges = len(near.ptr) - 1
        flat = np.bincount(near.ball * self.bins + which, minlength=edges * self.bins)
        return flat.reshape(edges, self.bins).astype(np.float32)

    def _distances(self, graphs: GraphSet, near: Balls, ends: np.ndarray) -> np.ndarray:
        """int64: 2 d + (whether the other end is one hop further) for every entry of the balls."""
        edges, width = len(ends), graphs.num_nodes + 1
        keys = near.ball * width + near.node
        order = np.argsort(keys)
        other = np.zeros(len(keys), np.int64)  # how many ends are as near as the nearest
        for end in ends.T:
            one = balls(graphs, np.arange(edges + 1), end, self.hops)
            place = order[np.searchsorted(keys, one.ball * width + one.node, sorter=order)]
            other[place] += one.hop == near.hop[place]
        return 2 * near.hop.astype(np.int64) + (other == 1)
