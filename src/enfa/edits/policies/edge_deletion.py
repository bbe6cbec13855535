"""Edge deletion: one subgraph per undirected edge, without that edge."""

from __future__ import annotations

import numpy as np

from enfa.edits.edits import DELETE, Edits
from enfa.edits.policy import Policy
from enfa.graphs import GraphSet

__all__ = ["EdgeDeletion", "undirected_edges"]


def undirected_edges(graphs: GraphSet, policy: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """How many undirected edges each graph has; the ends of each [edges, 2]; of how many directed edges each consists (two, a
    loop of one); and these, edge by edge."""
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
    both = np.stack([edge, partner[edge]], axis=1)
    loop = edge == partner[edge]
    per_graph = np.bincount(graphs.graph[graphs.dst[edge]], minlength=graphs.num_graphs)
    ends = np.stack([graphs.src[edge], graphs.dst[edge]], axis=1)
    return per_graph, ends, np.where(loop, 1, 2), both[np.stack([np.ones_like(loop), ~loop], axis=1)]


class EdgeDeletion(Policy):
    """Subgraph r of a graph lacks its undirected edge r, in both directions. Parallel edges count each.

    The ends of the edge are the roots of the subgraph. A graph without edges has one subgraph: itself.
    """

    marks = ((0.0,),)

    def edits(self, graphs: GraphSet) -> Edits:
        per_graph, ends, counts, both = undirected_edges(graphs, repr(self))
        delete = counts, both, np.full_like(both, DELETE)
        return Edits.build(per_graph, edge=delete, marks=self.marks, root=ends)
