"""Node deletion: one subgraph per node, without that node."""

from __future__ import annotations

import numpy as np

from enfa.edits.edits import DELETE, Edits
from enfa.edits.policy import Policy
from enfa.graphs import GraphSet
from enfa.graphs.graphset import ranges

__all__ = ["NodeDeletion"]


class NodeDeletion(Policy):
    """Subgraph r of a graph lacks node r and its edges.

    ``isolate=False`` removes the node's row (the paper). ``isolate=True`` keeps the row and removes only its
    edges, as ESAN's code does: pools and BatchNorm then count a node that has no neighbours.
    """

    marks = ((0.0,),)

    def __init__(self, isolate: bool = False) -> None:
        self.isolate = isolate

    def edits(self, graphs: GraphSet) -> Edits:
        nodes = np.arange(graphs.num_nodes)
        if not self.isolate:
            delete = (np.ones_like(nodes), nodes, np.full_like(nodes, DELETE))
            return Edits.build(np.diff(graphs.node_ptr), node=delete, marks=self.marks)
        # every edge into node r, and every edge out of it that is not a loop (a loop is among the first)
        into, out = np.diff(graphs.in_ptr), np.diff(graphs.out_ptr)
        owner = np.concatenate([np.repeat(nodes, into), np.repeat(nodes, out)])
        edge = np.concatenate([ranges(graphs.in_ptr[:-1], into), graphs.out_edge])
        loop = graphs.src[edge] == graphs.dst[edge]
        loop[: len(edge) // 2] = False
        owner, edge = owner[~loop], edge[~loop]
        edge = edge[np.argsort(owner, kind="stable")]
        counts = np.bincount(owner, minlength=graphs.num_nodes)
        return Edits.build(np.diff(graphs.node_ptr), edge=(counts, edge, np.full_like(edge, DELETE)), marks=self.marks)
