"""Which node a subgraph is about, for the steps that ask."""

from __future__ import annotations

import numpy as np

from enfa.edits import Edits
from enfa.graphs import GraphSet

__all__ = ["own_subgraphs", "rooted", "single_roots"]


def _missing(graphs: GraphSet, edits: Edits) -> bool:
    """Whether a subgraph of a graph with nodes has no root."""
    return edits.root is None or bool((edits.root[np.diff(graphs.node_ptr)[edits.graph] > 0] < 0).any())


def rooted(graphs: GraphSet, edits: Edits) -> tuple[np.ndarray, np.ndarray]:
    """(subgraph, root) pairs by subgraph: one for each subgraph, or two; none for a graph without nodes."""
    if edits.root is None or _missing(graphs, edits):
        raise ValueError(
            "Expected a policy that says which node each subgraph is about, such as NodeMarking, for bag.root, got one that "
            "does not"
        )
    sub, side = np.nonzero(edits.root >= 0)
    return sub, edits.root[sub, side]


def single_roots(graphs: GraphSet, edits: Edits) -> np.ndarray:
    """int64 [S]: the one root of every subgraph; -1 for the subgraph of a graph without nodes."""
    if edits.root is None or edits.root.shape[1] != 1 or _missing(graphs, edits):
        raise ValueError(
            "Expected a policy whose subgraphs have one root each, such as NodeMarking or EgoNets, for bag.diagonal and "
            "along='subgraphs', got one without"
        )
    return edits.root[:, 0]


def own_subgraphs(graphs: GraphSet, edits: Edits) -> np.ndarray:
    """int64 [N]: the subgraph whose root each node is."""
    root = single_roots(graphs, edits)
    there = np.flatnonzero(root >= 0)
    root = root[there]
    count = np.bincount(root, minlength=graphs.num_nodes)
    if (count != 1).any():
        node = int(np.argmax(count != 1))
        graph = int(graphs.graph[node])
        raise ValueError(
            f"Expected every node to be the root of one subgraph, for bag.diagonal and along='subgraphs', got "
            f"{count[node]} for node {node - graphs.node_ptr[graph]} of graph {graph}"
        )
    own = np.empty(graphs.num_nodes, np.int64)
    own[root] = there
    return own
