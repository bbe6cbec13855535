"""The order in which graphs of a sharded dataset are read: window by window, each of as many shards as memory has room for.

Shuffled, the shards are put in a random order and cut into windows, and the graphs of each window are permuted: a function of
(seed, epoch) and of the memory that was given. With W windows, a graph shares its window with one in W of all graphs, and in
another epoch with others; a full permutation lets any two meet in any. A batch may begin in one window and end in the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Cuts", "Windows"]


@dataclass(frozen=True)
class Windows:
    """Where the graphs of each shard begin, the bytes that one of them takes in memory, and how many a window may have."""

    ptr: np.ndarray  # int64 [shards + 1]
    size: np.ndarray  # float64 [shards]
    room: float

    def shard(self, graphs: np.ndarray) -> np.ndarray:
        """Which shard each graph is in."""
        return np.searchsorted(self.ptr, graphs, "right") - 1

    def order(self, graphs: np.ndarray, rng: np.random.Generator | None) -> tuple[np.ndarray, np.ndarray]:
        """``(order, ends)``: some graphs in the order of an epoch, and where windows end. Without ``rng``, as they stand."""
        shard = self.shard(graphs)
        if rng is not None:
            place = rng.permutation(len(self.size))
            together = np.argsort(place[shard], kind="stable")
            graphs, shard = graphs[together], shard[together]
        ends = self._ends(shard)
        if rng is not None:
            graphs, begin = graphs.copy(), 0
            for end in ends:
                graphs[begin:end] = rng.permutation(graphs[begin:end])
                begin = end
        return graphs, ends

    def _ends(self, shard: np.ndarray) -> np.ndarray:
        """As many runs of graphs of one shard as there is room for; at least one."""
        taken = np.cumsum(self.size[shard])
        runs = np.append(np.flatnonzero(np.diff(shard)) + 1, len(shard))
        if len(runs) > 4 * len(self.size):  # in an order that shards have nothing to do with
            return np.append(np.flatnonzero(np.diff(taken // self.room)) + 1, len(shard))
        found: list[int] = []
        before = last = 0.0
        for n, end in enumerate(runs):
            if taken[end - 1] - before > self.room and last > before:
                found.append(int(runs[n - 1]))
                before = last
            last = taken[end - 1]
        return np.array([*found, len(shard)])

    def part(self, batch: np.ndarray, rank: int, of: int) -> np.ndarray:
        """The graphs of a batch that one of several ranks takes: those of its shards, as many as the others do."""
        together = batch[np.argsort(self.shard(batch), kind="stable")]
        return np.array_split(together, of)[rank]


class Cuts:
    """In which window each batch of an epoch is cut: that of its last graph, to which its first ones are carried over."""

    def __init__(self, ends: np.ndarray, batches: Sequence[np.ndarray]) -> None:
        self.ends, self._end = ends, np.cumsum([len(batch) for batch in batches])
        self.window = np.searchsorted(ends, self._end, "left")

    def __len__(self) -> int:
        """How many windows there are."""
        return int(self.window[-1]) + 1 if len(self.window) else 0

    def batches(self, window: int) -> np.ndarray:
        """Which ones are cut in a window."""
        return np.flatnonzero(self.window == window)

    def carried(self, window: int) -> tuple[int, int] | None:
        """``(number, count)``: the batch that begins in a window, or before, and ends later; and its graphs so far."""
        number = int(np.searchsorted(self.window, window, "right"))
        if number == len(self.window):
            return None
        begin = self._end[number - 1] if number else 0
        count = int(self.ends[window] - begin)
        return (number, count) if count > 0 else None
