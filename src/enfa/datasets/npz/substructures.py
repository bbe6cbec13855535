"""How often small patterns occur at each node: counted exactly, for many graphs at a time."""

import numpy as np
import torch

from enfa.datasets.flat import FlatGraphs

__all__ = ["PATTERNS", "count_patterns", "stars"]

PATTERNS = ("tailed-triangle", "chordal-cycle", "clique4")
ROOM = 2**22  # numbers in a block of dense adjacency matrices


def count_patterns(flat: FlatGraphs) -> np.ndarray:
    """int64 [N, 3]: occurrences (not only induced ones) of each of ``PATTERNS`` with the node in the place that counts.

    Of a tailed triangle that is the tail's end, of a chordal cycle (a 4-cycle and one chord) one of the two nodes off the
    chord; nodes of a 4-clique are all alike. Edges must stand in both directions; a self-loop is none, and an edge that is
    repeated one.
    """
    found, begin, first, edge = np.zeros((len(flat.x), 3), np.int64), 0, 0, 0
    sizes, counts = flat.num_nodes, flat.num_edges
    while begin < len(sizes):
        end, widest = begin + 1, int(sizes[begin])
        while end < len(sizes) and (end + 1 - begin) * max(widest, int(sizes[end])) ** 2 <= ROOM:
            widest, end = max(widest, int(sizes[end])), end + 1
        edges = int(counts[begin:end].sum())
        within = flat.edges[edge : edge + edges], np.repeat(np.arange(end - begin), counts[begin:end])
        dense = torch.zeros(end - begin, widest, widest)  # float32 is exact up to 2^24
        dense[within[1], within[0][:, 0], within[0][:, 1]] = 1.0
        dense.diagonal(dim1=1, dim2=2).zero_()
        real = torch.arange(widest)[None] < torch.from_numpy(sizes[begin:end])[:, None]
        rows = _counted(dense.double())[real]
        found[first : first + len(rows)] = rows.round().numpy().astype(np.int64)
        begin, first, edge = end, first + len(rows), edge + edges
    return found


def _counted(a: torch.Tensor) -> torch.Tensor:
    """[B, n, n] adjacency matrices -> [B, n, 3]."""
    common = a @ a  # neighbours that two nodes share
    triangles = (a * common).sum(2) / 2
    # triangles at a neighbour, less those that have the node in them as well
    tailed = (a @ triangles[..., None])[..., 0] - 2 * triangles
    # an edge between two neighbours, and another node next to both of its ends
    chordal = ((a @ (a * (common - 1))) * a).sum(2) / 2
    graph, u, v = a.triu().nonzero(as_tuple=True)
    cliques = torch.zeros_like(triangles)
    for part in torch.arange(len(u)).split(max(ROOM // max(a.shape[2] ** 2, 1), 1)):
        g, ends = graph[part], (u[part], v[part])
        both = a[g, ends[0]] * a[g, ends[1]]
        # edges among the neighbours that the ends of an edge share: 4-cliques with this edge, each found at six edges
        each = ((both[:, None] @ a[g])[:, 0] * both).sum(1) / 2
        for end in ends:
            cliques.index_put_((g, end), each / 3, accumulate=True)
    return torch.stack([tailed, chordal, cliques], 2)


def stars(flat: FlatGraphs) -> np.ndarray:
    """int64 [N]: 3-stars with the node in their middle, of graphs whose edges stand in both directions."""
    first = np.repeat(np.cumsum(flat.num_nodes) - flat.num_nodes, flat.num_edges)
    degree = np.bincount(flat.edges[:, 0] + first, minlength=len(flat.x))
    return degree * (degree - 1) * (degree - 2) // 6
