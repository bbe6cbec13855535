"""Graphs that lie end to end in arrays, handed out block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat

import numpy as np
import torch
from torch_geometric.data import Data

from enfa.datasets.flat import FlatGraphs

__all__ = ["FlatStream"]

_MANY = 1_000  # graphs that are made at a time, where they are asked for one by one


class FlatStream:
    """The graphs of some arrays, with labels. It iterates over PyG graphs; :func:`enfa.compile` takes the arrays themselves,
    which are much smaller than as many ``Data`` objects, and need not be put together again.
    """

    def __init__(self, flat: FlatGraphs, y: np.ndarray | None = None) -> None:
        self.flat, self.y = flat, y

    def __len__(self) -> int:
        return len(self.flat.num_nodes)

    def flat_blocks(self, sizes: Iterable[int]) -> Iterator[tuple[FlatGraphs, np.ndarray | None]]:
        """Blocks of the given numbers of graphs, the last maybe smaller, and their labels."""
        first = 0
        for size in sizes:
            if first >= len(self):
                return
            some = np.arange(first, min(first + size, len(self)))
            yield self.flat.subset(some), None if self.y is None else self.y[some]
            first += size

    def __iter__(self) -> Iterator[Data]:
        for flat, y in self.flat_blocks(repeat(_MANY)):
            yield from flat.graphs(None if y is None else torch.from_numpy(y))
