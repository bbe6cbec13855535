"""k-reconstruction: subgraphs induced by k of a graph's n nodes."""

from __future__ import annotations

import math
import zlib
from itertools import chain, combinations

import numpy as np

from enfa.edits.edits import DELETE, Edits
from enfa.edits.policy import Policy
from enfa.graphs import GraphSet
from enfa.graphs.numbers import whole

__all__ = ["Reconstruction"]


def _all(n: int, k: int, count: int) -> np.ndarray:
    """int64 [count, k]: all sets of k of n numbers, in lexicographic order."""
    flat = np.fromiter(chain.from_iterable(combinations(range(n), k)), np.int64, count * k)
    return flat.reshape(count, k)


def _some(n: int, k: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """int64 [count, k]: distinct sets, drawn uniformly. There are at least four times as many."""
    found = np.zeros((0, k), np.int64)
    rows = max(1, min(count, 2**22 // n))
    while len(found) < count:
        drawn = np.sort(np.argpartition(rng.random((rows, n)), k - 1, axis=1)[:, :k], axis=1)
        found = np.concatenate([found, drawn])
        _, first = np.unique(found, axis=0, return_index=True)
        found = found[np.sort(first)]  # in the order drawn: cutting off the rest favours none
    return found[:count]


class Reconstruction(Policy):
    """Every subgraph is induced by k of the graph's n nodes: Cotta et al., "Reconstruction for Powerful Graph
    Representations", NeurIPS 2021.

    All sets of k nodes where there are at most ``max_subgraphs``, otherwise that many, drawn uniformly without
    repetition. The draw depends on ``seed`` and the graph's edges alone, not on its position. A negative k counts from
    n: ``k=-1`` is k = n - 1, which is node deletion. A graph with fewer than k nodes has one subgraph: itself.

    Where a set is small, or the bag is, subgraphs are described by the nodes that they keep, so that no row of
    the unedited graph is computed for their sake: the plan then never has more rows than the conventional model.
    Elsewhere they are described by what they lack; the n rows of the unedited graph are an eighth of the bag at most.
    """

    marks = ((0.0,),)

    def __init__(self, k: int, max_subgraphs: int = 100, seed: int = 0) -> None:
        if not isinstance(k, int) or isinstance(k, bool) or k == 0:
            raise ValueError(f"Expected k to be an integer other than 0, got {k!r}")
        self.k, self.max_subgraphs, self.seed = k, whole("max_subgraphs", max_subgraphs, 1), whole("seed", seed, 0)

    def edits(self, graphs: GraphSet) -> Edits:
        subs, sizes, nodes, values, keeps = [], [], [], [], []
        known: dict[tuple[int, int], np.ndarray] = {}
        for g, n in enumerate(np.diff(graphs.node_ptr).tolist()):
            k = self.k if self.k > 0 else n + self.k
            if k < 0 or k >= n:
                subs.append(0)
                continue
            sets = math.comb(n, k)
            count = min(sets, self.max_subgraphs)
            keep = 2 * k <= n or count * k <= 8 * n
            keep = keep and not (sets == count and k == n - 1)  # that is node deletion, edit by edit
            listed = k if keep else n - k
            if sets <= 4 * self.max_subgraphs:
                if (n, listed) not in known:
                    known[n, listed] = _all(n, listed, sets)
                chosen = known[n, listed]
                if count < sets:
                    chosen = chosen[np.sort(self._rng(graphs, g).choice(sets, count, replace=False))]
            else:
                chosen = _some(n, listed, count, self._rng(graphs, g))
            subs.append(count)
            sizes.append(np.full(count, listed))
            nodes.append((chosen + graphs.node_ptr[g]).reshape(-1))
            values.append(np.full(count * listed, 0 if keep else DELETE))
            keeps.append(np.full(count, keep))

        def joined(parts: list[np.ndarray]) -> np.ndarray:
            return np.concatenate([np.zeros(0, np.int64), *parts])

        node = joined(sizes), joined(nodes), joined(values)
        return Edits.build(np.array(subs), node=node, marks=self.marks, keeps=joined(keeps).astype(bool))

    def _rng(self, graphs: GraphSet, g: int) -> np.random.Generator:
        edges, first = slice(graphs.edge_ptr[g], graphs.edge_ptr[g + 1]), graphs.node_ptr[g]
        ends = np.stack([graphs.src[edges], graphs.dst[edges]]) - first
        return np.random.default_rng([self.seed, zlib.crc32(ends.tobytes()), int(graphs.node_ptr[g + 1] - first)])
