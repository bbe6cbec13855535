"""Which node a subgraph is about, for the steps that ask."""

import numpy as np

from enfa.edits import Edits
from enfa.graphs import GraphSet

__all__ = ["about_nodes", "local_roots", "own_subgraphs", "rooted", "single_roots"]


def _told(edits: Edits, verb: str) -> np.ndarray:
    if edits.root is None:
        raise ValueError(
            f"Expected a policy that says which node each subgraph is about, such as NodeMarking, for {verb}, got one that "
            f"does not"
        )
    return edits.root


def _check(graphs: GraphSet, edits: Edits, verb: str) -> np.ndarray:
    """int64 [S, 1 or 2]: the roots of subgraphs, of which each has some; those of graphs without nodes need not."""
    _told(edits, verb)
    assert edits.root is not None
    missing = (edits.root < 0).any(axis=1) & (np.diff(graphs.node_ptr)[edits.graph] > 0)
    if missing.any():
        sub = int(np.argmax(missing))
        graph = int(edits.graph[sub])
        raise ValueError(
            f"Expected a policy that says which node each subgraph is about, for {verb}, got none for subgraph "
            f"{sub - edits.sub_ptr[graph]} of graph {graph} (what a policy finds nothing to edit in is its own subgraph)"
        )
    return edits.root


def rooted(edits: Edits) -> tuple[np.ndarray, np.ndarray]:
    """(subgraph, root) pairs by subgraph: one for each subgraph, or two; none where a policy found nothing to edit."""
    root = _told(edits, "bag.root")
    sub, side = np.nonzero(root >= 0)
    return sub, root[sub, side]


def single_roots(graphs: GraphSet, edits: Edits) -> np.ndarray:
    """int64 [S]: the one root of every subgraph; -1 for the subgraph of a graph without nodes."""
    root = _check(graphs, edits, "bag.diagonal and along='subgraphs'")
    if root.shape[1] != 1:
        raise ValueError(
            f"Expected a policy whose subgraphs have one root each, such as NodeMarking or EgoNets, for bag.diagonal and "
            f"along='subgraphs', got {root.shape[1]} roots"
        )
    return root[:, 0]


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


def about_nodes(graphs: GraphSet, edits: Edits) -> tuple[np.ndarray, np.ndarray]:
    """(ptr [N+1], subgraphs by node): the subgraphs whose root each node is, or an end of whose root edge, each once."""
    root = _told(edits, "bag.pool(h, to='nodes')")
    there = root >= 0
    there[:, 1:] &= root[:, 1:] != root[:, :1]  # a root edge that is a loop has one end
    sub, side = np.nonzero(there)
    node = root[sub, side]
    order = np.argsort(node, kind="stable")
    return np.concatenate([[0], np.cumsum(np.bincount(node, minlength=graphs.num_nodes))]), sub[order]


def local_roots(graphs: GraphSet, edits: Edits) -> np.ndarray | None:
    """int64 [S, roots]: counted within each graph; -1 where there is none."""
    if edits.root is None:
        return None
    return np.where(edits.root < 0, -1, edits.root - graphs.node_ptr[edits.graph][:, None])
