"""Bytes of the conventional bags if they were compressed, by the codec of this package's own files.

What layout ``"paper"`` counts is written out here, some graphs at a time: of every subgraph both ends of its directed edges, as
nodes of the graph, and their attributes; once per graph its features, edges and attributes. Each array is packed as a compiled
dataset's are (differences, planes of bytes, zstd), so a file of bags and a file of distinct rows are compared like with like.
Nothing is kept. Training on such a file would mean to unpack it, and to compute every row.
"""

from collections.abc import Iterator

import numpy as np

from enfa.batch.file.packing import pack
from enfa.edits import Edits
from enfa.graphs import GraphSet
from enfa.plan.reference.expand import expand

__all__ = ["compressed_bags"]

_EDGES = 4_000_000  # of subgraphs written out at a time: the window of zstd is smaller


def _chunks(graphs: GraphSet, edits: Edits) -> Iterator[np.ndarray]:
    """Positions of graphs that follow each other and have about ``_EDGES`` edges in their bags; one graph at least."""
    per_graph = np.bincount(edits.graph, minlength=graphs.num_graphs) * np.diff(graphs.edge_ptr)
    part = (np.cumsum(per_graph) - per_graph) // _EDGES
    for first in np.unique(part):
        yield np.flatnonzero(part == first)


def _size(*arrays: np.ndarray) -> int:
    return sum(pack(np.ascontiguousarray(array))[0].nbytes for array in arrays)


def _columns(rows: np.ndarray | None, kind: np.ndarray) -> list[np.ndarray]:
    """Attributes as the bags repeat them, a column at a time."""
    return [] if rows is None else [column.astype(np.int64)[kind] for column in rows.T]


def compressed_bags(graphs: GraphSet, edits: Edits) -> int:
    """Bytes of all bags. Cost: the bags are written out once."""
    marks = len(edits.edge_marks)
    total = _size(graphs.x[graphs.node_kind], graphs.src, graphs.dst, *_columns(graphs.edge_attr, graphs.edge_kind))
    for chosen in _chunks(graphs, edits):
        some, changes = graphs.subset(chosen), edits.subset(graphs, chosen)
        bags = expand(some, changes, edges=True)
        node = bags.node - some.node_ptr[changes.graph[bags.sub]]
        total += _size(node[bags.src], node[bags.dst], *_columns(graphs.edge_attr, bags.kind // marks))
    return total
