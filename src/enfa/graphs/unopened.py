"""Graphs that lie end to end in arrays, as files hold them, are checked as they lie there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch_geometric.data import Data

from enfa.graphs.graphset import GraphSet
from enfa.graphs.layout import check_arrays, laid_out

__all__ = ["checked", "unopened"]


def unopened(graphs: Sequence[Data]) -> Any:
    """The arrays ``flat`` and labels ``y`` of a list that was not looked into, as :class:`enfa.datasets.unopened.Unopened`
    has them; None for any other."""
    return getattr(graphs, "unopened_arrays", None)


def checked(flat: Any, first: int = 0) -> GraphSet:
    """What :func:`enfa.graphs.check_graphs` makes of the same graphs one by one."""
    x = check_arrays("x", flat.x, flat.num_nodes, first)
    attr = None if flat.edge_attr is None else check_arrays("edge_attr", flat.edge_attr, flat.num_edges, first)
    return laid_out(flat.num_nodes, flat.num_edges, flat.edges.T, x, attr, first=first)
