"""Nodes of very high degree.

A hub of degree d has another row in every subgraph around it, and each such row reads d messages: d squared in all.
An edit near a hub changes few of them, though. So what it changes is listed first, without the other messages: equal
changes make equal rows, which are made once; and the number of different changes tells how many messages will have to
be stored, before any is. What is beyond :data:`STORED` is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from enfa.edits import Edits
from enfa.graphs import GraphSet
from enfa.plan.keys.intern import KeyTable, packed
from enfa.plan.rows._groups import Edges, Edited, Hubs, HubScratch, Kinds, Reach
from enfa.plan.rows._hubs import hub_changes
from enfa.plan.rows._walk import HUB

if TYPE_CHECKING:
    from enfa.plan.rows.pairs import PairRows

__all__ = ["LOOKED_AT", "STORED", "changes", "check_pairs", "too_many_messages", "too_many_pairs"]

# Messages into the distinct rows of a layer: 4 GiB of keys, and about 16 GiB with a plan and a step. Also affected
# (subgraph, node) pairs after a layer: 4 GiB.
STORED = 2**29
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


def changes(graphs: GraphSet, edges: Edges, kinds: Kinds, edits: Edited, within: Reach, pairs: PairRows, shared: bool) -> Hubs:
    """What :func:`~enfa.plan.rows._walk.walk` takes of hubs: for each subgraph those that it changes a little.

    Cost: one pass over what affected nodes send to hubs. Refuses a layer that would have to store too many messages. Not
    ``shared``: none, for equal changes make rows of their own.
    """
    g, subs, degree = graphs, len(pairs.complete), np.diff(graphs.in_ptr)
    order, ptr, nothing = sorted_edges(g, pairs.base, kinds.base), np.zeros(subs + 1, np.int64), np.empty(0, np.int32)
    change_of = np.full(g.num_nodes, -1, np.int32)
    into_hubs = int(degree[degree > HUB].sum()) if shared else 0
    if into_hubs == 0:
        return Hubs(order, ptr, nothing, nothing, nothing, change_of)
    table, node, change = KeyTable(), np.empty(1024, np.int32), np.empty(1024, np.int32)
    to_hub = g.out_edge[degree[g.out_dst] > HUB]
    to_ptr = np.concatenate([[0], np.cumsum(np.bincount(g.src[to_hub], minlength=g.num_nodes))])
    count, start, touched = np.zeros(g.num_nodes, np.int64), np.empty(g.num_nodes, np.int64), np.flatnonzero(degree > HUB)
    room = (np.empty(2 * into_hubs + 2, np.int64) for _ in range(5))
    scratch = HubScratch(pairs.base.copy(), to_ptr, to_hub, count, start, touched, *room)
    within = within._replace(stamp=np.full(g.num_nodes, -1))
    need, done = np.zeros(3, np.int64), 0
    while done < subs:
        done = hub_changes(done, edges, kinds, edits, within, pairs, scratch, table.arrays, ptr, node, change, need)
        if done < subs:
            table.reserve(int(need[1]) + 1, int(need[2]))
            if ptr[done] + need[1] > len(node):
                extra = max(int(need[1]), len(node))
                node, change = (np.concatenate([a, np.empty(extra, np.int32)]) for a in (node, change))
    if need[0] > STORED:
        raise too_many_messages(g, int(need[0]))
    return Hubs(order, ptr, node, change, np.full(max(len(table), 1), -1, np.int32), change_of)


def _largest_hub(graphs: GraphSet) -> str:
    degree = np.diff(graphs.in_ptr)
    hub = int(np.argmax(degree))
    graph = int(graphs.graph[hub])
    return f"node {hub - graphs.node_ptr[graph]} of graph {graph} has {degree[hub]} incoming edges"


_INSTEAD = "Draw fewer subgraphs (Subsample), use fewer layers, leave out some edges, or raise the limit where there is memory"


def check_pairs(graphs: GraphSet, edits: Edits, pairs: PairRows) -> None:
    """Refuse a layer after which too many pairs may be affected: whatever the affected nodes send to, and themselves."""
    sends = np.concatenate([[0], np.cumsum(np.diff(graphs.out_ptr)[pairs.node])])
    reached = np.where(pairs.complete, 0, np.diff(sends[pairs.ptr]) + np.diff(edits.edge_ptr))
    affected = int(np.minimum(np.diff(pairs.ptr) + reached, np.diff(graphs.node_ptr)[edits.graph]).sum())
    if affected > STORED:
        raise too_many_pairs(graphs, affected)


def too_many_pairs(graphs: GraphSet, pairs: int) -> ValueError:
    return ValueError(
        f"Expected at most {STORED} (subgraph, node) pairs that an edit affects (enfa.plan.rows.hubs.STORED), got up to "
        f"{pairs}, which take {8 * pairs / 2**30:.1f} GiB: edits spread to all that affected nodes send to, and "
        f"{_largest_hub(graphs)}. {_INSTEAD}. Only models that read roots (bag.root, readout='root') without BatchNorm leave "
        f"out what no root reads"
    )


def too_many_messages(graphs: GraphSet, stored: int, looked_at: int | None = None) -> ValueError:
    """The error for a layer beyond the bounds; names the largest hub."""
    limit = f"at most {STORED} messages into the distinct rows of a layer (enfa.plan.rows.hubs.STORED), got {stored}"
    if looked_at is not None and stored <= STORED:
        limit = f"to look at no more than {LOOKED_AT} messages (enfa.plan.rows.hubs.LOOKED_AT), got {looked_at} or more"
    return ValueError(
        f"Expected {limit}, which take {8 * stored / 2**30:.1f} GiB as keys alone: {_largest_hub(graphs)}, and a hub of degree "
        f"d has another row in each of the d subgraphs around it, d squared messages in all. {_INSTEAD}"
    )
