"""Subgraphs that are induced by a few of a graph's nodes."""

import numpy as np

from enfa.edits.edits import DELETE
from enfa.graphs import GraphSet
from enfa.graphs.balls import Balls
from enfa.graphs.graphset import ranges

__all__ = ["induced"]


def induced(
    graphs: GraphSet, graph: np.ndarray, near: Balls, value: np.ndarray
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """``(node, keeps)`` for :meth:`~enfa.edits.Edits.build`: subgraph s of graph ``graph[s]`` has the nodes of ball s.

    ``value``: the mark of every entry of the balls, 0 for none. A subgraph is described by what it has or by what it lacks,
    whichever is shorter; where all that it has is marked, by what it has.
    """
    subs, size = len(graph), np.diff(near.ptr)
    sub, node = near.ball, near.node.astype(np.int64)
    marked = np.bincount(sub[value > 0], minlength=subs)
    keeps = (2 * size <= np.diff(graphs.node_ptr)[graph]) | (marked == size)
    gone_sub, gone = _others(graphs, graph, near, np.flatnonzero(~keeps))
    listed = keeps[sub] | (value > 0)
    sub = np.concatenate([sub[listed], gone_sub])
    order = np.argsort(sub, kind="stable")
    node = np.concatenate([node[listed], gone])[order]
    value = np.concatenate([value[listed], np.full_like(gone, DELETE)])[order]
    return (np.bincount(sub, minlength=subs), node, value), keeps


def _others(graphs: GraphSet, graph: np.ndarray, near: Balls, subs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``(subgraph, node)`` pairs that lie outside of the balls of some subgraphs."""
    first, here = graphs.node_ptr[graph[subs]], np.diff(graphs.node_ptr)[graph[subs]]
    ptr = np.concatenate([[0], np.cumsum(here)])
    inside = np.zeros(ptr[-1], bool)
    size = np.diff(near.ptr)[subs]
    inside[near.node[ranges(near.ptr[subs], size)] + np.repeat(ptr[:-1] - first, size)] = True
    return np.repeat(subs, here)[~inside], ranges(first, here)[~inside]
