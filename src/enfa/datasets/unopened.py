"""Lists of graphs that are made when they are first looked into.

Files hold all graphs end to end in a few arrays, and that is what checking and compiling them wants. A PyG object for each
graph costs more than all the rest of reading, so these are made where one is asked for.
"""

from __future__ import annotations

from collections import UserList
from collections.abc import Iterable, Iterator
from threading import RLock
from typing import NamedTuple

from torch import Tensor
from torch_geometric.data import Data

from enfa.datasets.flat import FlatGraphs

__all__ = ["Arrays", "Unopened"]

_OPENING = RLock()  # of all: two threads must not make two lists


class Arrays(NamedTuple):
    """What graphs lie in, end to end, and a label, or a row of them, for each."""

    flat: FlatGraphs
    y: Tensor


class Unopened(UserList[Data]):
    """A list of graphs, which is made when it is first looked into.

    From then on the graphs are what counts, since they may be changed, and not the arrays that they were made of.
    """

    def __init__(self, graphs: Iterable[Data] = (), arrays: Arrays | None = None) -> None:
        self._made, self.unopened_arrays = list(graphs), arrays

    @property
    def data(self) -> list[Data]:  # type: ignore[override]
        """What the methods of a UserList work on."""
        if self.unopened_arrays is not None:
            with _OPENING:
                if self.unopened_arrays is not None:
                    self._made = self.unopened_arrays.flat.graphs(self.unopened_arrays.y)
                    self.unopened_arrays = None
        return self._made

    @data.setter
    def data(self, graphs: list[Data]) -> None:
        self._made, self.unopened_arrays = graphs, None

    def __len__(self) -> int:
        return len(self._made) if self.unopened_arrays is None else len(self.unopened_arrays.flat.num_nodes)

    def __iter__(self) -> Iterator[Data]:
        return iter(self.data)

    def __copy__(self) -> Unopened:
        return self.copy()
