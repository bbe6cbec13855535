"""What kernels take: arrays that belong together, under one name."""

from typing import NamedTuple

import numpy as np

from enfa.edits import Edits
from enfa.graphs import GraphSet

__all__ = ["Bags", "Edges", "Edited", "HubScratch", "Hubs", "Kinds", "Reach", "Scratch"]


class Edges(NamedTuple):
    """Those of the unedited graphs, by target and by source, as in :class:`~enfa.graphs.GraphSet`."""

    in_ptr: np.ndarray  # int64 [N+1]
    src: np.ndarray  # int64 [E]
    dst: np.ndarray  # int64 [E]
    out_ptr: np.ndarray  # int64 [N+1]
    out_dst: np.ndarray  # int64 [E]

    @staticmethod
    def of(graphs: GraphSet) -> "Edges":
        return Edges(graphs.in_ptr, graphs.src, graphs.dst, graphs.out_ptr, graphs.out_dst)


class Kinds(NamedTuple):
    """Of edges. ``now`` is overwritten for one subgraph at a time and restored: -1 for a deleted edge."""

    now: np.ndarray  # int32 [E]
    base: np.ndarray  # int32 [E]


class Edited(NamedTuple):
    """What subgraphs change, as in :class:`~enfa.edits.Edits`."""

    node_ptr: np.ndarray  # int64 [S+1]
    node: np.ndarray  # int64
    node_value: np.ndarray  # int64
    edge_ptr: np.ndarray  # int64 [S+1]
    edge: np.ndarray  # int64
    edge_value: np.ndarray  # int64

    @staticmethod
    def of(edits: Edits) -> "Edited":
        return Edited(edits.node_ptr, edits.node, edits.node_value, edits.edge_ptr, edits.edge, edits.edge_value)


class Bags(NamedTuple):
    """Where graphs and their bags begin, the root of each subgraph, and the subgraph of each root."""

    node_ptr: np.ndarray  # int64 [G+1]
    sub_ptr: np.ndarray  # int64 [G+1]
    root: np.ndarray  # int64 [S]
    own: np.ndarray  # int64 [N]


class Reach(NamedTuple):
    """Which nodes matter: those from which a root can be reached in ``depth`` edges; all where that is below 0."""

    roots: np.ndarray  # int64 [S, roots], -1 for none
    depth: int
    stamp: np.ndarray  # int64 [N], scratch: -1, then the subgraph that last reached a node
    queue: np.ndarray  # int64 [nodes of a graph], scratch


class Scratch(NamedTuple):
    seen: np.ndarray  # int64 [N]: -1, then the subgraph that a node was last a candidate in
    items: np.ndarray  # int64: the messages into one node
    candidates: np.ndarray  # int64: the nodes of one graph


class Hubs(NamedTuple):
    """For each subgraph the hubs that it changes a little, and the number of each change."""

    order: np.ndarray  # int64 [E]: the edges into hubs so that base keys come out sorted, and those of edited subgraphs nearly
    ptr: np.ndarray  # int64 [S+1]
    node: np.ndarray  # int32
    change: np.ndarray  # int32
    row: np.ndarray  # int32, by change: the row that it makes, -1 until it is known
    of: np.ndarray  # int32 [N], scratch: -1


class HubScratch(NamedTuple):
    before: np.ndarray  # int32 [N]: a copy of the base rows, which are overwritten for one subgraph at a time
    to_ptr: np.ndarray  # int64 [N+1]
    to_hub: np.ndarray  # int64: the edges of each node that lead to hubs
    counts: np.ndarray  # int64 [N]: 0
    start: np.ndarray  # int64 [N]
    touched: np.ndarray  # int64 [hubs]
    found: np.ndarray  # int64, as the rest: room for all edges into hubs, twice
    changed: np.ndarray
    removed: np.ndarray
    added: np.ndarray
    items: np.ndarray
