"""Bytes of the bags if they were written out: conventional, and as ego nets. Nothing is written; it is counted.

Layout ``"paper"``. The paper does not state its layout; this one gives its figures. All numbers are int64.

- conventional: for every subgraph both ends and all attributes of each directed edge; once per graph its features
  (at their own width), its edges and their attributes;
- ego (L layers): the same, but of every subgraph only the edges between nodes within L+1 hops of a pivot; and a pivot
  hop of each node of its graph (a deleted one included: the array is as long as the graph).

Layout ``"esan"``: what ESAN's code saves. Every subgraph repeats the features (with the mark, where there is one), and
has two index vectors over its nodes (subgraph_batch, subgraph_node_idx) and one number of its own (subgraph_idx). A
deleted node stays as an isolated row. Each graph has its labels, its original edges, two counts (num_subgraphs,
num_nodes_per_subgraph), and for each of these arrays one offset. Features count at their own width.

Megabytes are 10^6 bytes. Labels, offsets and file headers are not in ``"paper"``.
"""

from dataclasses import dataclass

import numpy as np

from enfa.edits import Edits
from enfa.graphs import GraphSet
from enfa.graphs.names import unknown
from enfa.plan.rows._groups import Edges, Edited
from enfa.report.bags._hops import Scratch, count_by_hop

__all__ = ["LAYOUTS", "Bags", "count_bags", "stored_bags"]

LAYOUTS = ("paper", "esan")
_INT = 8  # bytes


@dataclass(frozen=True)
class Bags:
    """What the layouts need to know of all bags."""

    graphs: int
    nodes: int
    edges: int  # directed
    subgraphs: int
    pairs: int  # (subgraph, node of its graph), deleted nodes included
    rows: int  # pairs that exist: rows of the conventional model
    sub_edges: int  # directed edges of all subgraphs
    rows_within: list[int]  # [h]: pairs with pivot hop <= h
    edges_within: list[int]  # [h]: edges with both ends within h hops
    feature_bytes: int  # of one node, marks not counted
    attributes: int  # columns of edge_attr
    mark_bytes: int  # of one marked node's mark, as a column of x; 0 where nothing is marked
    edge_mark_columns: int


def count_bags(graphs: GraphSet, edits: Edits, hops: int) -> Bags:
    """Count up to pivot hop ``hops``. Cost: the size of the ego nets, of which one is there at a time."""
    rows, edges = np.zeros(hops + 1, np.int64), np.zeros(hops + 1, np.int64)
    left = count_by_hop(
        edits.kept, np.diff(graphs.edge_ptr)[edits.graph], Edges.of(graphs), graphs.out_edge, Edited.of(edits),
        Scratch.of(graphs.num_nodes, graphs.num_edges), rows, edges,
    )  # fmt: skip
    pairs = np.diff(graphs.node_ptr)[edits.graph]
    width = graphs.x.dtype.itemsize
    return Bags(
        graphs=graphs.num_graphs,
        nodes=graphs.num_nodes,
        edges=graphs.num_edges,
        subgraphs=edits.num_subgraphs,
        pairs=int(pairs.sum()),
        rows=int(edits.sizes(graphs).sum()),
        sub_edges=int(left),
        rows_within=np.cumsum(rows).tolist(),
        edges_within=np.cumsum(edges).tolist(),
        feature_bytes=graphs.x.shape[1] * width,
        attributes=0 if graphs.edge_attr is None else graphs.edge_attr.shape[1],
        mark_bytes=edits.marks.shape[1] * width if (edits.node_value > 0).any() else 0,
        edge_mark_columns=edits.edge_marks.shape[1],
    )


def stored_bags(bags: Bags, layout: str, ego_layers: int | None = None, label_bytes: int = 0) -> dict[str, int]:
    """Bytes of the bags by what they are; ``ego_layers`` None: conventional.

    ``edges`` of the subgraphs; ``pairs``: what is kept for each (subgraph, node), pivot hops or index vectors;
    ``features``; ``rest``: original edges, and in ESAN's layout labels (``label_bytes`` for all), counts and offsets.
    """
    if layout not in LAYOUTS:
        raise unknown("the layout", layout, LAYOUTS)
    edges = bags.sub_edges if ego_layers is None else bags.edges_within[ego_layers + 1]
    pivots = 0 if ego_layers is None else _INT * bags.pairs
    original = _INT * (2 + bags.attributes) * bags.edges
    if layout == "paper":
        return {
            "edges": _INT * (2 + bags.attributes) * edges,
            "pairs": pivots,
            "features": bags.feature_bytes * bags.nodes,
            "rest": original,
        }
    attributed = bool(bags.attributes or bags.edge_mark_columns)
    arrays = 9 + attributed + bool(bags.attributes) + (ego_layers is not None)
    return {
        "edges": _INT * (2 + bags.attributes + bags.edge_mark_columns) * edges,
        "pairs": 2 * _INT * bags.pairs + pivots,
        "features": (bags.feature_bytes + bags.mark_bytes) * bags.pairs,
        "rest": original + label_bytes + _INT * (bags.subgraphs + 2 * bags.graphs + arrays * (bags.graphs + 1)),
    }
