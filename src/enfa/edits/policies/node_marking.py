"""Node marking: one subgraph per node, in which that node carries a mark."""

from __future__ import annotations

import numpy as np

from enfa.edits.edits import Edits
from enfa.edits.policy import Policy
from enfa.graphs import GraphSet

__all__ = ["NodeMarking"]


class NodeMarking(Policy):
    """Subgraph r of a graph is the graph itself with node r marked: cat(X, I_r) in the paper."""

    def edits(self, graphs: GraphSet) -> Edits:
        nodes = np.arange(graphs.num_nodes)
        one = np.ones_like(nodes)
        return Edits.build(np.diff(graphs.node_ptr), node=(one, nodes, one), marks=self.marks)
