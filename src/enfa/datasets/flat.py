"""All graphs of a dataset laid end to end, which is how files hold them and how checking them is fast."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

__all__ = ["FlatGraphs"]


@dataclass(frozen=True, eq=False)
class FlatGraphs:
    """G graphs with N nodes and M edges between them.

    ============== =========== ==========================================================
    ``num_nodes``  ``[G]``     nodes of each graph, adding up to N
    ``num_edges``  ``[G]``     rows of ``edges`` of each graph, adding up to M
    ``edges``      ``[M, 2]``  source and target, counted from 0 in each graph
    ``x``          ``[N, C]``  integers are categories, anything else becomes float32
    ``edge_attr``  ``[M, D]``  likewise, or ``None``
    ============== =========== ==========================================================

    ``source`` is the file or dataset that errors name.

    Two graphs, a path 0-1-2 whose edges stand in both directions and a single node:

    >>> flat = FlatGraphs(
    ...     source="example", num_nodes=np.array([3, 1]), num_edges=np.array([4, 0]),
    ...     edges=np.array([[0, 1], [1, 0], [1, 2], [2, 1]]), x=np.array([5, 6, 5, 7]))
    >>> flat.graphs(torch.tensor([0, 1]))[0]
    Data(x=[3, 1], edge_index=[2, 4], y=[1])
    """

    source: str
    num_nodes: np.ndarray
    num_edges: np.ndarray
    edges: np.ndarray
    x: np.ndarray
    edge_attr: np.ndarray | None = None

    def __post_init__(self) -> None:
        for name in ("num_nodes", "num_edges", "edges"):
            value = getattr(self, name)
            if value.dtype.kind not in "iu":
                raise ValueError(f"{self.source}: expected {name} to hold integers, got {value.dtype}")
            object.__setattr__(self, name, value.astype(np.int64, copy=False))
        object.__setattr__(self, "x", self._columns("x", self.x))
        if self.edge_attr is not None:
            object.__setattr__(self, "edge_attr", self._columns("edge_attr", self.edge_attr))
        self._check_sizes()
        self._check_ends()

    def graphs(self, y: torch.Tensor | None = None, level: str = "graph") -> list[Data]:
        """The graphs one by one, with row g of ``y`` as graph g's (or, with ``level="node"``, those of its nodes), if there is
        one. Their tensors are views, not copies.
        """
        none: list[Any] = [None] * len(self.num_nodes)
        nodes, edges = self.num_nodes.tolist(), self.num_edges.tolist()
        xs = torch.from_numpy(self.x).split(nodes)
        ends = torch.from_numpy(np.ascontiguousarray(self.edges.T)).split(edges, dim=1)
        ys = none if y is None else y.split(nodes if level == "node" else 1)
        attrs = none if self.edge_attr is None else torch.from_numpy(self.edge_attr).split(edges)
        return [Data(x=x, edge_index=e, edge_attr=a, y=label) for x, e, a, label in zip(xs, ends, attrs, ys)]

    def subset(self, graphs: np.ndarray) -> "FlatGraphs":
        """Some of the graphs, in the given order."""
        nodes, edges = (_taken(count, graphs) for count in (self.num_nodes, self.num_edges))
        attr = None if self.edge_attr is None else self.edge_attr[edges]
        counts = self.num_nodes[graphs], self.num_edges[graphs]
        return FlatGraphs(self.source, *counts, self.edges[edges], self.x[nodes], attr)

    def with_reversed(self) -> "FlatGraphs":
        """Each edge followed by its reverse, with the same attributes; a self-loop is its own reverse."""
        edges, num_edges = np.repeat(self.edges, 2, axis=0), 2 * self.num_edges
        edges[1::2] = self.edges[:, ::-1]
        attr = None if self.edge_attr is None else np.repeat(self.edge_attr, 2, axis=0)
        proper = self.edges[:, 0] != self.edges[:, 1]
        if not proper.all():
            keep = np.ones(len(edges), dtype=bool)
            keep[1::2] = proper
            graph = np.repeat(np.arange(len(num_edges)), num_edges)
            num_edges, edges = np.bincount(graph[keep], minlength=len(num_edges)), edges[keep]
            attr = None if attr is None else attr[keep]
        found = FlatGraphs(self.source, self.num_nodes, num_edges, edges, self.x, attr)
        found.__dict__["share_reversed"] = 1.0
        return found

    @cached_property
    def share_reversed(self) -> float:
        """The share of edges, self-loops left out, whose reverse is there too; 1 if there is no edge."""
        if (self.num_edges % 2 == 0).all() and np.array_equal(self.edges[0::2], self.edges[1::2, ::-1]):
            return 1.0  # next to each other, as many files have them
        first = np.repeat(np.cumsum(self.num_nodes) - self.num_nodes, self.num_edges)
        source, target = self.edges[:, 0] + first, self.edges[:, 1] + first
        proper = source != target
        source, target = source[proper], target[proper]
        total = len(self.x)
        forth, back = np.sort(source * total + target), np.sort(target * total + source)
        if np.array_equal(forth, back):
            return 1.0
        return float((back[np.minimum(np.searchsorted(back, forth), len(back) - 1)] == forth).mean())

    def _columns(self, name: str, value: np.ndarray) -> np.ndarray:
        if value.ndim not in (1, 2) or value.dtype.kind not in "iubf":
            raise ValueError(
                f"{self.source}: expected {name} to be a table of numbers, got {value.dtype} of shape {value.shape}"
            )
        value = value[:, None] if value.ndim == 1 else value
        return np.ascontiguousarray(value, dtype=np.float32 if value.dtype.kind == "f" else np.int64)

    def _check_sizes(self) -> None:
        for name in ("num_nodes", "num_edges"):
            value = getattr(self, name)
            if value.ndim != 1 or (len(value) and value.min() < 0):
                raise ValueError(f"{self.source}: expected {name} to be a list of counts, got {value}")
        if len(self.num_nodes) != len(self.num_edges):
            raise ValueError(
                f"{self.source}: num_nodes counts {len(self.num_nodes)} graphs, "
                f"num_edges {len(self.num_edges)}; is a file cut short?"
            )
        if self.edges.ndim != 2 or self.edges.shape[1] != 2:
            raise ValueError(f"{self.source}: expected edges to have shape [M, 2], got {self.edges.shape}")
        rows = [("x", self.x, self.num_nodes, "nodes"), ("edges", self.edges, self.num_edges, "edges")]
        if self.edge_attr is not None:
            rows.append(("edge_attr", self.edge_attr, self.num_edges, "edges"))
        for name, value, counts, what in rows:
            if len(value) != counts.sum():
                raise ValueError(
                    f"{self.source}: the graphs have {counts.sum()} {what}, "
                    f"but {name} has {len(value)} rows; is a file cut short?"
                )

    def _check_ends(self) -> None:
        size = np.repeat(self.num_nodes, self.num_edges)[:, None]
        outside = ((self.edges < 0) | (self.edges >= size)).any(axis=1)
        if outside.any():
            row = int(np.argmax(outside))
            graph = int(np.searchsorted(np.cumsum(self.num_edges), row, side="right"))
            raise ValueError(
                f"{self.source}: graph {graph} has nodes 0 to {self.num_nodes[graph] - 1}, "
                f"but an edge {tuple(self.edges[row].tolist())}"
            )


def _taken(counts: np.ndarray, graphs: np.ndarray) -> np.ndarray:
    """Which rows the chosen graphs have, of an array with ``counts[g]`` rows for graph g."""
    first, count = (np.cumsum(counts) - counts)[graphs], counts[graphs]
    return np.repeat(first - (np.cumsum(count) - count), count) + np.arange(count.sum())
