"""As many molecule-like graphs as one likes: those of ZINC with some atoms and bonds changed, made as they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from enfa.datasets.flat import FlatGraphs

ATOMS, BONDS = 0.1, 0.05  # of each graph, on average, that are changed


def _uniform(seed: int, graph: np.ndarray, place: np.ndarray, salt: int) -> np.ndarray:
    """Numbers from 0 to 1 that depend on the place in a graph and nothing else (splitmix64); products wrap round."""
    value = np.full(len(graph), 0x9E3779B97F4A7C15 * (seed + 1) % 2**64, np.uint64)
    for part in (graph, place, np.array(salt)):
        value = value ^ (part.astype(np.uint64) * np.uint64(0xBF58476D1CE4E5B9))
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0x94D049BB133111EB) + np.uint64(0x632BE59BD9B4E019)
        value ^= value >> np.uint64(31)
    return (value >> np.uint64(11)).astype(np.float64) / 2.0**53


def _places(counts: np.ndarray) -> np.ndarray:
    """0, 1, ... within each graph."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


class ChangedMolecules:
    """``count`` graphs: graph i is molecule i modulo their number, each atom and bond of another type with a small chance.

    A graph depends on the seed and its place only, whatever the blocks. ``flat`` has every edge once.
    """

    def __init__(self, flat: FlatGraphs, y: np.ndarray, count: int, seed: int = 0) -> None:
        self.flat, self.y, self.count, self.seed = flat, y, count, seed

    def __len__(self) -> int:
        return self.count

    def flat_blocks(self, sizes: Iterable[int]) -> Iterator[tuple[FlatGraphs, np.ndarray]]:
        first = 0
        for size in sizes:
            if first >= self.count:
                return
            graphs = np.arange(first, min(first + size, self.count))
            which = graphs % len(self.y)
            some = self.flat.subset(which)
            assert some.edge_attr is not None
            x = self._changed(some.x, self.flat.x, graphs, some.num_nodes, ATOMS, 0)
            attr = self._changed(some.edge_attr, self.flat.edge_attr, graphs, some.num_edges, BONDS, 2)
            changed = FlatGraphs(some.source, some.num_nodes, some.num_edges, some.edges, x, attr)
            yield changed.with_reversed(), self.y[which]
            first += size

    def _changed(
        self, values: np.ndarray, every: np.ndarray | None, graphs: np.ndarray, counts: np.ndarray, share: float, salt: int
    ) -> np.ndarray:
        """Some of the values drawn anew, as often as the molecules have them."""
        assert every is not None
        graph, place = np.repeat(graphs, counts), _places(counts)
        hit = _uniform(self.seed, graph, place, salt) < share
        drawn = every[(_uniform(self.seed, graph[hit], place[hit], salt + 1) * len(every)).astype(np.int64)]
        found = values.copy()
        found[hit] = drawn
        return found
