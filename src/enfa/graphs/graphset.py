"""Many graphs as one set of flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

__all__ = ["GraphSet", "channels", "ranges"]


def ranges(start: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Concatenate ``arange(s, s + n)`` over all pairs.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ptr = np.zeros(len(length) + 1, np.int64)
    np.cumsum(length, out=ptr[1:])
    return np.arange(ptr[-1]) + np.repeat(start - ptr[:-1], length)


def channels(rows: np.ndarray) -> int | list[int]:
    """How many float columns features have; or, of categorical ones, how many values each."""
    return rows.shape[1] if rows.dtype.kind == "f" else (rows.max(axis=0, initial=0) + 1).tolist()


@dataclass(frozen=True)
class GraphSet:
    """Graphs 0…G-1 with N nodes and E directed edges in all.

    Nodes are numbered through: graph g has the nodes ``node_ptr[g]`` to ``node_ptr[g+1] - 1``. Edges are
    sorted by their target, so that the edges into node v are ``in_ptr[v]`` to ``in_ptr[v+1] - 1``: the
    number of an edge is its place in that list. ``order`` tells where each stood in the input.

    Example: graph 0 is the path a - b, graph 1 a single node::

        node_ptr = [0, 2, 3]     in_ptr = [0, 1, 2, 2]
        src      = [1, 0]        dst    = [0, 1]         order = [1, 0] if the input was a->b, b->a
    """

    node_ptr: np.ndarray  # int64 [G+1]
    src: np.ndarray  # int64 [E], the node an edge comes from
    dst: np.ndarray  # int64 [E], ascending
    order: np.ndarray  # int64 [E], place of the edge in its input, counted through all graphs
    node_kind: np.ndarray  # int64 [N], which row of x
    x: np.ndarray  # [K, F] distinct feature rows: float32/float64, or int64 for categorical columns
    edge_kind: np.ndarray  # int64 [E], which row of edge_attr; all 0 where there is none
    edge_attr: np.ndarray | None  # [KE, FE] distinct rows
    # int64: the largest values of the last columns of x, those of x_cat beside floats
    categories: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    first: int = 0  # the place of graph 0 in its dataset: more, where graphs are added to others

    @property
    def num_graphs(self) -> int:
        return len(self.node_ptr) - 1

    @property
    def num_nodes(self) -> int:
        return int(self.node_ptr[-1])

    @property
    def num_edges(self) -> int:
        return len(self.src)

    @cached_property
    def in_ptr(self) -> np.ndarray:
        return np.searchsorted(self.dst, np.arange(self.num_nodes + 1))

    @cached_property
    def edge_ptr(self) -> np.ndarray:
        """int64 [G+1]: the edges of each graph."""
        return self.in_ptr[self.node_ptr]

    @cached_property
    def graph(self) -> np.ndarray:
        """int64 [N]: the graph of each node."""
        return np.repeat(np.arange(self.num_graphs), np.diff(self.node_ptr))

    @cached_property
    def out_edge(self) -> np.ndarray:
        """int64 [E]: edge numbers sorted by source; node v's are ``out_ptr[v]`` to ``out_ptr[v+1] - 1``."""
        return np.argsort(self.src, kind="stable")

    @cached_property
    def out_ptr(self) -> np.ndarray:
        return np.searchsorted(self.src[self.out_edge], np.arange(self.num_nodes + 1))

    @cached_property
    def out_dst(self) -> np.ndarray:
        return self.dst[self.out_edge]

    @cached_property
    def partner(self) -> np.ndarray:
        """int64 [E]: the same undirected edge the other way; -1 where there is none; a loop is its own.

        Of parallel edges those with equal attributes are paired first.
        """
        low, high = np.minimum(self.src, self.dst), np.maximum(self.src, self.dst)
        partner = np.where(self.src == self.dst, np.arange(self.num_edges), -1)
        pair = np.unique(low * self.num_nodes + high, return_inverse=True)[1].reshape(-1)
        # among edges of equal attributes, then among those that are left
        for key in (pair * (int(self.edge_kind.max(initial=0)) + 1) + self.edge_kind, pair):
            alone = partner < 0
            there, back = np.flatnonzero(alone & (self.src < self.dst)), np.flatnonzero(alone & (self.src > self.dst))
            there = there[np.lexsort((self.edge_kind[there], key[there]))]
            back = back[np.lexsort((self.edge_kind[back], key[back]))]
            # the k-th edge a->b belongs to the k-th edge b->a
            place = np.arange(len(there)) - np.searchsorted(key[there], key[there])
            match = np.searchsorted(key[back], key[there]) + place
            found = match < np.searchsorted(key[back], key[there], side="right")
            partner[there[found]] = back[match[found]]
            partner[back[match[found]]] = there[found]
        return partner

    def subset(self, graphs: Sequence[int] | np.ndarray) -> GraphSet:
        """The given graphs, in the given order. Features are not renumbered."""
        chosen = np.asarray(graphs, np.int64)
        sizes, first = np.diff(self.node_ptr)[chosen], self.node_ptr[chosen]
        counts, first_edge = np.diff(self.edge_ptr)[chosen], self.edge_ptr[chosen]
        node_ptr = np.concatenate([[0], np.cumsum(sizes)])
        nodes, edges = ranges(first, sizes), ranges(first_edge, counts)
        shift = np.repeat(node_ptr[:-1] - first, counts)
        # keep `order` meaningful: places within each graph, counted through the chosen ones
        edge_ptr = np.concatenate([[0], np.cumsum(counts)])[:-1]
        order = self.order[edges] + np.repeat(edge_ptr - first_edge, counts)
        return GraphSet(
            node_ptr=node_ptr,
            src=self.src[edges] + shift,
            dst=self.dst[edges] + shift,
            order=order,
            node_kind=self.node_kind[nodes],
            x=self.x,
            edge_kind=self.edge_kind[edges],
            edge_attr=self.edge_attr,
            categories=self.categories,
        )
