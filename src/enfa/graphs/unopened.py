"""Graphs that nobody has looked at yet lie end to end in arrays, and are checked as they lie there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from torch import Tensor
from torch_geometric.data import Data

from enfa.graphs.graphset import GraphSet
from enfa.graphs.layout import check_arrays, laid_out

__all__ = ["Unopened", "checked", "unopened"]


class Unopened(Protocol):
    """The arrays, and a label, or a row of them, for each graph."""

    @property
    def flat(self) -> Any: ...

    @property
    def y(self) -> Tensor: ...


def unopened(graphs: Sequence[Data]) -> Unopened | None:
    """What the graphs of a list lie in that has not been looked into, such as :class:`enfa.datasets.unopened.Unopened`."""
    return getattr(graphs, "unopened_arrays", None)


def checked(flat: Any, first: int = 0) -> GraphSet:
    """What :func:`enfa.graphs.check_graphs` makes of the same graphs one by one."""
    x = check_arrays("x", flat.x, flat.num_nodes, first)
    attr = None if flat.edge_attr is None else check_arrays("edge_attr", flat.edge_attr, flat.num_edges, first)
    return laid_out(flat.num_nodes, flat.num_edges, flat.edges.T, x, attr, first=first)
