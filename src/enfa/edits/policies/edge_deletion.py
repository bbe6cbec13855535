"""Edge deletion: one subgraph per undirected edge, without that edge."""

import numpy as np

from enfa.edits.edits import DELETE, Edits
from enfa.edits.policy import Policy
from enfa.graphs import GraphSet

__all__ = ["EdgeDeletion", "undirected_edges"]


def undirected_edges(graphs: GraphSet, policy: str) -> tuple[np.ndarray, np.ndarray]:
    """``(edge, partner)``: each undirected edge once, as its two directed edges; a loop has partner itself."""
    partner = graphs.partner
    if (partner < 0).any():
        e = int(np.argmax(partner < 0))
        g = int(graphs.graph[graphs.dst[e]])
        first = graphs.node_ptr[g]
        raise ValueError(
            f"{policy} needs undirected graphs, but graph {g} has the edge "
            f"{graphs.src[e] - first} -> {graphs.dst[e] - first} and not its reverse "
            f"(torch_geometric.utils.to_undirected makes one)"
        )
    edge = np.flatnonzero(graphs.src <= graphs.dst)
    return edge, partner[edge]


class EdgeDeletion(Policy):
    """Subgraph r of a graph lacks its undirected edge r, in both directions. Parallel edges count each.

    The ends of the edge are the roots of the subgraph. A graph without edges has one subgraph: itself.
    """

    marks = ((0.0,),)

    def edits(self, graphs: GraphSet) -> Edits:
        edge, partner = undirected_edges(graphs, repr(self))
        per_graph = np.bincount(graphs.graph[graphs.dst[edge]], minlength=graphs.num_graphs)
        both = np.stack([edge, partner], axis=1).reshape(-1)
        keep = np.ones(len(both), bool)
        keep[1::2] = edge != partner
        counts = np.where(edge == partner, 1, 2)
        both = both[keep]
        ends = np.stack([graphs.src[edge], graphs.dst[edge]], axis=1)
        delete = counts, both, np.full_like(both, DELETE)
        return Edits.build(per_graph, edge=delete, marks=self.marks, root=ends)
