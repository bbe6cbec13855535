"""The subgraphs about a graph's most central nodes."""

from __future__ import annotations

import numpy as np

from enfa.edits.edits import Edits
from enfa.edits.policies.chosen import Chosen
from enfa.edits.policy import Policy
from enfa.graphs import GraphSet
from enfa.graphs.numbers import whole

__all__ = ["MostCentral", "subgraph_centrality"]

LARGEST = 4096  # nodes of a graph: it takes some thirty products of n x n matrices
EQUAL = 1e-9  # relative: rounding is far below, and nodes that can be swapped differ by nothing else
_TERMS = 24  # of the series of exp on a matrix of norm 1: the rest is below 1e-24


def subgraph_centrality(adjacency: np.ndarray) -> np.ndarray:
    """float64 [n]: the diagonal of exp(A), each closed walk of k edges weighted by 1 / k!, up to a factor for the whole graph.

    A has no negative entries, so nothing cancels: every value is exact but for roundings of its own size, however small it is.
    """
    halvings = max(0, int(np.ceil(np.log2(max(adjacency.sum(axis=1).max(initial=0.0), 1.0)))))
    part = adjacency / 2.0**halvings
    total = term = np.eye(len(adjacency))
    for k in range(1, _TERMS):
        term = term @ part / k
        total = total + term
    for _ in range(halvings):  # exp(A) = exp(A / 2) squared
        total = total @ total
        total = total / total.max()
    return np.diagonal(total).copy()


class MostCentral(Chosen):
    """Of another policy's bags the subgraphs whose roots are the ``count`` nodes of highest subgraph centrality.

    The selection of HyMN: Southern et al., "Balancing Efficiency and Expressiveness: Subgraph GNNs with Walk-Based Centrality",
    ICML 2025, arXiv 2501.03113. A node's centrality is its entry on the diagonal of exp(A), where A counts the edges from node
    to node. Nodes whose centralities are equal (to nine digits) are taken in the order of their numbers: a graph whose nodes
    are numbered otherwise may get other ones of these. Nothing is drawn, so the choice depends on the graph alone.
    """

    def __init__(self, policy: Policy, count: int) -> None:
        if not isinstance(policy, Policy):
            raise TypeError(f"Expected an enfa.Policy to choose from, got {policy!r}")
        self.policy, self.count = policy, whole("count", count, 1)

    def edits(self, graphs: GraphSet) -> Edits:
        edits = self.policy.edits(graphs)
        if edits.root is None or edits.root.shape[1] != 1:
            got = "no roots" if edits.root is None else "two roots each"
            raise ValueError(f"Expected a policy whose subgraphs have one root each, to choose by its centrality, got {got}")
        chosen = np.zeros(graphs.num_nodes + 1, bool)
        chosen[-1] = True  # what has no root is the only subgraph of its graph
        for g in range(graphs.num_graphs):
            chosen[self._central(graphs, g)] = True
        return edits.subset(graphs, np.arange(graphs.num_graphs), np.flatnonzero(chosen[edits.root[:, 0]]))

    def _central(self, graphs: GraphSet, g: int) -> np.ndarray:
        """int64: the nodes of one graph that are chosen."""
        first, nodes = int(graphs.node_ptr[g]), int(graphs.node_ptr[g + 1] - graphs.node_ptr[g])
        if nodes <= self.count:
            return first + np.arange(nodes)
        if nodes > LARGEST:
            raise ValueError(f"Expected graphs of at most {LARGEST} nodes for subgraph centrality, got {nodes} in graph {g}")
        adjacency = np.zeros((nodes, nodes))
        edges = slice(graphs.edge_ptr[g], graphs.edge_ptr[g + 1])
        np.add.at(adjacency, (graphs.dst[edges] - first, graphs.src[edges] - first), 1.0)
        value = subgraph_centrality(adjacency)
        order = np.argsort(-value, kind="stable")
        drop = value[order[:-1]] - value[order[1:]] > EQUAL * value[order[:-1]]
        rank = np.empty(nodes, np.int64)
        rank[order] = np.concatenate([[0], np.cumsum(drop)])
        return first + np.argsort(rank, kind="stable")[: self.count]
