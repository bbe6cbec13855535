"""Ego nets: one subgraph per node, of all that is within some hops of it."""

from __future__ import annotations

import numpy as np

from enfa.edits.edits import DELETE, Edits
from enfa.edits.policy import Policy
from enfa.graphs import GraphSet
from enfa.graphs.balls import Balls, balls
from enfa.graphs.graphset import ranges
from enfa.graphs.numbers import whole

__all__ = ["EgoNets"]


class EgoNets(Policy):
    """Subgraph r of a graph is induced by the nodes from which node r can be reached in at most ``hops`` edges.

    ESAN's EGO and, with ``mark=True``, which marks the root, EGO+; with one pool per ego net also NGNN.
    ``isolate=False`` drops the nodes outside; ``isolate=True`` keeps them without edges, as ESAN's code does: pools and
    BatchNorm then count them. Describing that takes an edit for every edge outside, nearly n m in all (about 55 bytes
    each while compiling), so it is for small graphs.
    """

    def __init__(self, hops: int, mark: bool = False, isolate: bool = False) -> None:
        self.hops, self.mark, self.isolate = whole("hops", hops, 0), mark, isolate

    @property
    def marks(self) -> tuple[tuple[float, ...], ...]:  # type: ignore[override]
        return ((0.0,), (1.0,)) if self.mark else ((0.0,),)

    def edits(self, graphs: GraphSet) -> Edits:
        nodes, per_graph = np.arange(graphs.num_nodes), np.diff(graphs.node_ptr)
        near = balls(graphs, np.arange(graphs.num_nodes + 1), nodes, self.hops)
        if self.isolate:
            edge = self._outside(graphs, near)
            mark = (np.ones_like(nodes), nodes, np.ones_like(nodes)) if self.mark else None
            return Edits.build(per_graph, node=mark, edge=edge, marks=self.marks, root=nodes)
        # list what is there or what is not, whichever is shorter
        size, here = np.diff(near.ptr), per_graph[graphs.graph]
        keeps = 2 * size <= here
        sub, node = near.ball, near.node.astype(np.int64)
        listed = keeps[sub]
        value = (node == nodes[sub]).astype(np.int64) * self.mark
        gone_sub, gone = self._others(graphs, near, np.flatnonzero(~keeps))
        root = np.flatnonzero(~keeps) if self.mark else np.zeros(0, np.int64)
        sub = np.concatenate([sub[listed], gone_sub, root])
        node = np.concatenate([node[listed], gone, root])
        value = np.concatenate([value[listed], np.full_like(gone, DELETE), np.ones_like(root)])
        order = np.argsort(sub, kind="stable")
        counts = np.bincount(sub, minlength=graphs.num_nodes)
        return Edits.build(per_graph, (counts, node[order], value[order]), marks=self.marks, keeps=keeps, root=nodes)

    @staticmethod
    def _others(graphs: GraphSet, near: Balls, subs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``(subgraph, node)`` pairs that lie outside the ego nets of some subgraphs."""
        first = graphs.node_ptr[graphs.graph[subs]]
        here = np.diff(graphs.node_ptr)[graphs.graph[subs]]
        ptr = np.concatenate([[0], np.cumsum(here)])
        inside = np.zeros(ptr[-1], bool)
        size = np.diff(near.ptr)[subs]
        inside[near.node[ranges(near.ptr[subs], size)] + np.repeat(ptr[:-1] - first, size)] = True
        return np.repeat(subs, here)[~inside], ranges(first, here)[~inside]

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
