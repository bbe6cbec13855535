"""Pair marking: one subgraph per pair of nodes, whether there is an edge between them or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from enfa.edits.edits import DELETE, Edits
from enfa.edits.induced import induced
from enfa.edits.policies.node_marking import one_hot
from enfa.edits.policy import Policy
from enfa.graphs import GraphSet
from enfa.graphs.balls import balls
from enfa.graphs.graphset import ranges
from enfa.graphs.numbers import integers, whole

__all__ = ["PairMarking"]


class PairMarking(Policy):
    """A subgraph for every pair of nodes {u, v}, in which both are told from all others, and whose roots they are.

    For link prediction: what is computed for a pair must not tell whether it is an edge, so ``hide`` deletes the edges between
    them, both ways, in their subgraph. Nothing else of it depends on these: what is within some hops of u or v is so without.

    Args:
        hops: the nodes from which u or v can be reached in at most so many edges; None: the whole graph.
        mark: True marks u and v alike. ``"distances"`` labels every node by its hop distance to the nearer of them: 0 to
            ``hops``, one channel each, and one more for what is further. A model needs ``mark_channels=hops + 2`` then.
        hide: whether the edges between u and v are deleted.
        pairs: for the graph at each position of a dataset its pairs, ``[k, 2]``, in order; none for those behind. None: all
            pairs u < v of every graph.

    A graph without pairs has one subgraph: itself.
    """

    def __init__(
        self, hops: int | None = None, mark: bool | str = True, hide: bool = True, pairs: Sequence[Any] | None = None
    ) -> None:
        if mark not in (True, "distances"):
            raise ValueError(f"Expected mark to be True or 'distances', got {mark!r}")
        if mark == "distances" and hops is None:
            raise ValueError("Expected hops for mark='distances', got None")
        self.hops, self.mark, self.hide = None if hops is None else whole("hops", hops, 0), mark, bool(hide)
        self.pairs = None if pairs is None else [_checked(g, of).tolist() for g, of in enumerate(pairs)]

    @property
    def marks(self) -> tuple[tuple[float, ...], ...]:  # type: ignore[override]
        return one_hot((self.hops or 0) + 2) if self.mark == "distances" else ((0.0,), (1.0,))

    def for_any_graph(self) -> PairMarking:
        """Whose pairs are others."""
        return PairMarking(self.hops, self.mark, self.hide)

    def __repr__(self) -> str:
        """Without a list of many pairs, which errors would repeat."""
        count = sum(map(len, self.pairs or ()))
        shown = self.pairs if count <= 8 else f"<{count} pairs>"
        return f"PairMarking(hops={self.hops}, mark={self.mark!r}, hide={self.hide}, pairs={shown})"

    def edits(self, graphs: GraphSet) -> Edits:
        ends, per_graph = self._ends(graphs)
        graph = np.repeat(np.arange(graphs.num_graphs), per_graph)
        keeps, two = None, np.full(len(ends), 2)
        if self.hops is None:
            node = two, ends.reshape(-1), np.ones(2 * len(ends), np.int64)
        else:
            near = balls(graphs, 2 * np.arange(len(ends) + 1), ends.reshape(-1), self.hops)
            hop = near.hop.astype(np.int64)
            value = hop + 1 if self.mark == "distances" else (hop == 0).astype(np.int64)
            node, keeps = induced(graphs, graph, near, value)
        edge = self._between(graphs, ends) if self.hide else None
        return Edits.build(per_graph, node, edge, self.marks, keeps=keeps, root=ends)

    def _ends(self, graphs: GraphSet) -> tuple[np.ndarray, np.ndarray]:
        """``(int64 [pairs, 2], how many of each graph)``; nodes counted through all graphs."""
        found = [np.zeros((0, 2), np.int64)]
        for g, (first, nodes) in enumerate(zip(graphs.node_ptr[:-1].tolist(), np.diff(graphs.node_ptr).tolist())):
            place = graphs.first + g
            if self.pairs is None:
                here = np.stack(np.triu_indices(nodes, 1), axis=1)
            else:
                here = np.array(self.pairs[place] if place < len(self.pairs) else [], np.int64).reshape(-1, 2)
            if len(here) and here.max() >= nodes:
                raise ValueError(f"{self!r}: Expected pairs of the {nodes} nodes of graph {place}, got node {here.max()}")
            found.append(here + first)
        return np.concatenate(found), np.array([len(one) for one in found[1:]], np.int64)

    @staticmethod
    def _between(graphs: GraphSet, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The deletion of every edge between the ends of each pair, parallel ones, too."""
        key, width = graphs.dst * graphs.num_nodes + graphs.src, graphs.num_nodes
        order = np.argsort(key, kind="stable")
        wanted = np.stack([ends[:, 1] * width + ends[:, 0], ends[:, 0] * width + ends[:, 1]], axis=1).reshape(-1)
        start, stop = (np.searchsorted(key[order], wanted, side=side) for side in ("left", "right"))
        edge = order[ranges(start, stop - start)]
        return (stop - start).reshape(-1, 2).sum(axis=1), edge, np.full_like(edge, DELETE)


def _checked(place: int, pairs: Any) -> np.ndarray:
    found = integers(f"the pairs of graph {place}", np.asarray(pairs, None if len(pairs) else np.int64).reshape(-1, 2))
    if len(found) and (found.min() < 0 or (found[:, 0] == found[:, 1]).any()):
        wrong = found[(found < 0).any(axis=1) | (found[:, 0] == found[:, 1])][0]
        raise ValueError(f"Expected pairs of two different nodes in graph {place}, got {wrong.tolist()}")
    return found
