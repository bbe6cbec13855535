"""Nodes of very high degree.

A hub of degree d has another row in every subgraph around it, and each such row reads d messages: d squared in all.
Where few of its neighbours are of different kinds these are few distinct rows, but all have to be looked at; where all
differ they have to be stored as well. So both are bounded here, and what is beyond is refused.
"""

from __future__ import annotations

import numpy as np

from enfa.graphs import GraphSet
from enfa.plan.intern import packed
from enfa.plan.kernels.walk import HUB

__all__ = ["LOOKED_AT", "STORED", "sorted_edges", "too_many_messages"]

STORED = 2**30  # messages into the distinct rows of a layer: 8 GiB of keys
LOOKED_AT = 2**38  # messages looked at to find them: an hour or so


def sorted_edges(graphs: GraphSet, row: np.ndarray, kind: np.ndarray) -> np.ndarray:
    """int64 [E]: the edges into each hub in the order of its base key (row, kind); other edges as they are.

    The key of an edited subgraph is nearly sorted then, and takes one pass instead of a sort.
    """
    order = np.arange(graphs.num_edges)
    places = np.flatnonzero((np.diff(graphs.in_ptr) > HUB)[graphs.dst])
    key = packed(row[graphs.src[places]], kind[places])
    order[places] = places[np.lexsort((key, graphs.dst[places]))]
    return order


def too_many_messages(graphs: GraphSet, stored: int, looked_at: int) -> ValueError:
    """The error for a layer beyond the bounds; names the largest hub."""
    degree = np.diff(graphs.in_ptr)
    hub = int(np.argmax(degree))
    graph = int(graphs.graph[hub])
    return ValueError(
        f"Expected at most {STORED} messages into the distinct rows of a layer, and at most {LOOKED_AT} looked at, "
        f"got more than {stored} and {looked_at}. A hub of degree d has another row in every subgraph around it, which "
        f"takes d squared messages: node {hub - graphs.node_ptr[graph]} of graph {graph} has {degree[hub]} incoming "
        f"edges. Leave out such nodes or some of their edges, or use fewer layers"
    )
