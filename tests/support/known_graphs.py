"""Graphs of which it is known who can tell them apart."""

from __future__ import annotations

from itertools import product

import torch
from torch_geometric.data import Data


def graph_of(nodes: int, edges: list[tuple[int, int]]) -> Data:
    """Undirected, all nodes alike."""
    index = torch.tensor(edges + [(v, u) for u, v in edges]).T.reshape(2, -1)
    return Data(x=torch.ones(nodes, 1), edge_index=index)


def ring(nodes: int, *skips: int) -> Data:
    """A ring, and links that skip some nodes: a circular skip link graph."""
    return graph_of(nodes, [(v, (v + skip) % nodes) for skip in (1, *skips) for v in range(nodes)])


def triangles_and_hexagon() -> list[Data]:
    two = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)]
    return [graph_of(6, two), ring(6)]


def rook_and_shrikhande() -> list[Data]:
    """Strongly regular (16, 6, 2, 2), both: the smallest pair that 3-WL (2-FWL) does not tell apart."""
    cells = list(product(range(4), repeat=2))
    steps = [(0, 1), (1, 0), (1, 1)]  # Shrikhande: the Cayley graph of Z4 x Z4 with these and their opposites
    rook = [(u, v) for u, v in product(range(16), repeat=2) if u < v and any(a == b for a, b in zip(cells[u], cells[v]))]
    other = [(u, cells.index(((a + i) % 4, (b + j) % 4))) for u, (a, b) in enumerate(cells) for i, j in steps]
    return [graph_of(16, rook), graph_of(16, other)]


def relabelled(graph: Data, seed: int = 0) -> Data:
    order = torch.randperm(int(graph.num_nodes), generator=torch.Generator().manual_seed(seed))
    x = torch.empty_like(graph.x)
    x[order] = graph.x
    return Data(x=x, edge_index=order[graph.edge_index])
