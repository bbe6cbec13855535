"""Which graphs a model that puts self-loops of its own in the place of theirs can have."""

import numpy as np

from enfa.graphs import GraphSet
from enfa.plan.step import Program

__all__ = ["check_loops"]


def check_loops(graphs: GraphSet, program: Program) -> None:
    """Two neighbours may share a row, so a message from a row to itself need not have come along a self-loop."""
    if program.loops:
        return
    loops = np.flatnonzero(graphs.src == graphs.dst)
    if len(loops):
        node = int(graphs.src[loops[0]])
        graph = int(graphs.graph[node])
        raise ValueError(
            f"Expected graphs without self-loops, because the model removes them or puts its own in their place, got one at "
            f"node {node - graphs.node_ptr[graph]} of graph {graph}: torch_geometric.utils.remove_self_loops gives the same "
            f"results"
        )
