"""All (subgraph, node) pairs and all edges of all subgraphs, written out: what the conventional model computes."""

from dataclasses import dataclass

import numpy as np

from enfa.edits import DELETE, Edits
from enfa.graphs import GraphSet
from enfa.graphs.graphset import ranges

__all__ = ["Expanded", "edge_tables", "expand", "largest_value"]

_MOST = 2**31  # pairs; their arrays alone would take 100 GiB


@dataclass(frozen=True)
class Expanded:
    """Rows 0…R-1 are the pairs that exist, by subgraph and then by node; edges are sorted by target row."""

    sub: np.ndarray  # int64 [R]
    node: np.ndarray  # int64 [R]
    mark: np.ndarray  # int64 [R]
    sub_ptr: np.ndarray  # int64 [S+1], the rows of each subgraph
    place: np.ndarray  # int64 [pairs, deleted ones included] -> row, or -1
    pair_ptr: np.ndarray  # int64 [S+1]: pair (s, v) is place[pair_ptr[s] + v - first node of the graph]
    src: np.ndarray  # int64 [M], source row
    dst: np.ndarray  # int64 [M], target row
    kind: np.ndarray  # int64 [M], edge kind, marks included

    @property
    def num_rows(self) -> int:
        return len(self.sub)


def expand(graphs: GraphSet, edits: Edits, edges: bool) -> Expanded:
    """Write all subgraphs out; ``edges``: with the kinds of their edges. Memory: n squared under node marking."""
    graph, subs = edits.graph, np.arange(edits.num_subgraphs)
    nodes = np.diff(graphs.node_ptr)[graph]
    pair_ptr = np.concatenate([[0], np.cumsum(nodes)])
    if pair_ptr[-1] > _MOST:
        raise ValueError(
            f"Expected at most {_MOST} (subgraph, node) pairs to write out, got {pair_ptr[-1]}: "
            f"use the distinct plan (kind='distinct'), which shares them"
        )
    sub, node = np.repeat(subs, nodes), ranges(graphs.node_ptr[graph], nodes)
    shift = pair_ptr[:-1] - graphs.node_ptr[graph]  # node number -> pair, per subgraph
    mark = np.where(edits.kept[sub], DELETE, 0)
    mark[edits.node + np.repeat(shift, np.diff(edits.node_ptr))] = edits.node_value
    here = mark != DELETE
    place = np.where(here, np.cumsum(here) - 1, -1)

    counts = np.diff(graphs.edge_ptr)[graph]
    edge_ptr = np.concatenate([[0], np.cumsum(counts)])
    edge, of_sub = ranges(graphs.edge_ptr[graph], counts), np.repeat(subs, counts)
    value = np.zeros(len(edge), np.int64)
    edge_shift = edge_ptr[:-1] - graphs.edge_ptr[graph]
    value[edits.edge + np.repeat(edge_shift, np.diff(edits.edge_ptr))] = edits.edge_value
    src, dst = place[graphs.src[edge] + shift[of_sub]], place[graphs.dst[edge] + shift[of_sub]]
    keep = (value != DELETE) & (src >= 0) & (dst >= 0)
    kind = (graphs.edge_kind[edge] * len(edits.edge_marks) + value)[keep] if edges else 0 * edge[keep]
    rows = np.bincount(sub[here], minlength=edits.num_subgraphs)
    return Expanded(
        sub[here], node[here], mark[here], np.concatenate([[0], np.cumsum(rows)]), place, pair_ptr,
        src[keep], dst[keep], kind,
    )  # fmt: skip


def edge_tables(edge_attr: np.ndarray | None, edge_marks: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
    """``(edge_attr, edge_mark)`` by edge kind: every distinct attribute row with every mark.

    Attribute row k with mark m is kind ``k * marks + m``, so that new attribute rows can be added behind the old.
    """
    if edge_attr is None:
        return None, edge_marks
    if len(edge_attr) == 0:  # no edge anywhere: one row that nothing reads
        edge_attr = np.zeros((1, edge_attr.shape[1]), edge_attr.dtype)
    return np.repeat(edge_attr, len(edge_marks), axis=0), np.tile(edge_marks, (len(edge_attr), 1))


def largest_value(array: np.ndarray | None) -> tuple[int, ...]:
    """The largest value of each categorical column; nothing for floats."""
    if array is None or array.dtype.kind != "i" or len(array) == 0:
        return ()
    return tuple(int(v) for v in array.max(axis=0))
