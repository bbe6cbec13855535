"""Graphs that nobody has looked at yet: a list of them is made when somebody does.

Files hold all graphs end to end in a few arrays, and that is what checking and compiling them wants. A PyG object for each
graph costs more than all the rest of reading, so it is made where one is asked for.
"""

from __future__ import annotations

from collections import UserList
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import RLock
from typing import Any, NamedTuple

from torch import Tensor
from torch_geometric.data import Data

from enfa.graphs.graphset import GraphSet
from enfa.graphs.layout import check_arrays, laid_out

__all__ = ["Arrays", "Unopened", "checked", "unopened"]

_OPENING = RLock()  # of all: two threads must not make two lists


class Arrays(NamedTuple):
    """What graphs lie in, end to end, as :class:`enfa.datasets.flat.FlatGraphs` has it; and a label, or a row, for each."""

    flat: Any
    y: Tensor


class Unopened(UserList[Data]):
    """A list of graphs, which is made when it is first looked into.

    From then on the graphs are what counts, since they may be changed, and not the arrays that they were made of.
    """

    def __init__(
        self, graphs: Iterable[Data] = (), arrays: Arrays | None = None, make: Callable[[], list[Data]] = list[Data]
    ) -> None:
        self.arrays, self._make = arrays, make
        self._made = list(graphs)

    @property
    def data(self) -> list[Data]:  # type: ignore[override]
        """What the methods of a UserList work on."""
        if self.arrays is not None:
            with _OPENING:
                if self.arrays is not None:
                    self._made, self._make = self._make(), list
                    self.arrays = None
        return self._made

    @data.setter
    def data(self, graphs: list[Data]) -> None:
        self._made, self._make, self.arrays = graphs, list, None

    def __len__(self) -> int:
        return len(self._made) if self.arrays is None else len(self.arrays.flat.num_nodes)

    def __iter__(self) -> Iterator[Data]:
        return iter(self.data)

    def __copy__(self) -> Unopened:
        return self.copy()


def unopened(graphs: Sequence[Data]) -> Arrays | None:
    """The arrays of graphs that nobody has looked at."""
    return graphs.arrays if isinstance(graphs, Unopened) else None


def checked(flat: Any, first: int = 0) -> GraphSet:
    """What :func:`enfa.graphs.check_graphs` makes of the same graphs one by one."""
    x = check_arrays("x", flat.x, flat.num_nodes, first)
    attr = None if flat.edge_attr is None else check_arrays("edge_attr", flat.edge_attr, flat.num_edges, first)
    return laid_out(flat.num_nodes, flat.num_edges, flat.edges.T, x, attr, first=first)
