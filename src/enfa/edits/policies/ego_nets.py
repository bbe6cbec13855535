"""Ego nets: one subgraph per node, of all that is within some hops of it."""

from __future__ import annotations

import numpy as np

from enfa.edits.edits import DELETE, Edits
from enfa.edits.induced import induced
from enfa.edits.policies.node_marking import one_hot
from enfa.edits.policy import Policy
from enfa.graphs import GraphSet
from enfa.graphs.balls import Balls, balls
from enfa.graphs.graphset import ranges
from enfa.graphs.numbers import whole

__all__ = ["EgoNets"]


class EgoNets(Policy):
    """Subgraph r of a graph is induced by the nodes from which node r can be reached in at most ``hops`` edges.

    ESAN's EGO and, with ``mark=True``, which marks the root, EGO+; with one pool per ego net also NGNN.
    ``mark="distances"`` labels every node by its hop distance to the root instead, as ``NodeMarking(distances=hops)`` does:
    0 to ``hops``, one channel each, and one more, "far", for whatever ``isolate`` keeps outside. A model needs
    ``mark_channels=hops + 2`` then.
    ``isolate=False`` drops the nodes outside; ``isolate=True`` keeps them without edges, as ESAN's code does: pools and
    BatchNorm then count them. Describing that takes an edit for every edge outside, nearly n m in all (about 55 bytes
    each while compiling), so it is for small graphs.
    """

    def __init__(self, hops: int, mark: bool | str = False, isolate: bool = False) -> None:
        if mark not in (False, True, "distances"):
            raise ValueError(f"Expected mark to be False, True or 'distances', got {mark!r}")
        self.hops, self.mark, self.isolate = whole("hops", hops, 0), mark, isolate

    @property
    def marks(self) -> tuple[tuple[float, ...], ...]:  # type: ignore[override]
        if self.mark == "distances":
            return one_hot(self.hops + 2)
        return ((0.0,), (1.0,)) if self.mark else ((0.0,),)

    def edits(self, graphs: GraphSet) -> Edits:
        nodes, per_graph = np.arange(graphs.num_nodes), np.diff(graphs.node_ptr)
        near = balls(graphs, np.arange(graphs.num_nodes + 1), nodes, self.hops)
        hop = near.hop.astype(np.int64)
        value = hop + 1 if self.mark == "distances" else (hop == 0).astype(np.int64) * bool(self.mark)
        if not self.isolate:
            node, keeps = induced(graphs, graphs.graph, near, value)
            return Edits.build(per_graph, node, marks=self.marks, keeps=keeps, root=nodes)
        there = value > 0
        mark = np.bincount(near.ball[there], minlength=len(nodes)), near.node[there].astype(np.int64), value[there]
        return Edits.build(per_graph, mark, self._outside(graphs, near), self.marks, root=nodes)

    @staticmethod
    def _outside(graphs: GraphSet, near: Balls) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The deletion of every edge that has not both ends in the ego net."""
        subs = np.arange(graphs.num_nodes)
        count = np.diff(graphs.edge_ptr)[graphs.graph]
        here = np.diff(graphs.node_ptr)[graphs.graph]
        shift = np.concatenate([[0], np.cumsum(here)])[:-1] - graphs.node_ptr[graphs.graph]
        inside = np.zeros(int(here.sum()), bool)
        inside[near.node + shift[near.ball]] = True
        sub, edge = np.repeat(subs, count), ranges(graphs.edge_ptr[graphs.graph], count)
        cut = ~(inside[graphs.src[edge] + shift[sub]] & inside[graphs.dst[edge] + shift[sub]])
        sub, edge = sub[cut], edge[cut]
        return np.bincount(sub, minlength=graphs.num_nodes), edge, np.full_like(edge, DELETE)
