"""Pivot hops against a breadth-first search in plain Python."""

from collections import deque

import numpy as np
from cases import POLICIES
from hypothesis import given
from hypothesis import strategies as st
from strategies import graph_lists

from enfa.edits import DELETE, Edits
from enfa.graphs import GraphSet, check_graphs
from enfa.plan.rows._groups import Edges, Edited
from enfa.report.bags._hops import Scratch, ego_net


def _search(graphs: GraphSet, edits: Edits, s: int, limit: int) -> dict[int, int]:
    """Distances from the pivots of subgraph s, along the edges that it has."""
    nodes = dict(_pairs(edits.node_ptr, edits.node, edits.node_value, s))
    edges = dict(_pairs(edits.edge_ptr, edits.edge, edits.edge_value, s))
    gone = {v for v, m in nodes.items() if m == DELETE}
    arrows = list(zip(graphs.src.tolist(), graphs.dst.tolist()))
    pivots = {v for v, m in nodes.items() if m != DELETE}
    pivots |= {v for e, (u, v) in enumerate(arrows) if u in gone or e in edges}
    found = dict.fromkeys(sorted(pivots - gone), 0)
    queue = deque(found)
    while queue:
        at = queue.popleft()
        for e, (u, v) in enumerate(arrows):
            if u == at and v not in found and v not in gone and edges.get(e) != DELETE and found[at] < limit:
                found[v] = found[at] + 1
                queue.append(v)
    return found


def _pairs(ptr: np.ndarray, target: np.ndarray, value: np.ndarray, s: int) -> list[tuple[int, int]]:
    part = slice(ptr[s], ptr[s + 1])
    return list(zip(target[part].tolist(), value[part].tolist()))


@given(data=st.data())
def test_hops_are_distances(data: st.DataObject) -> None:
    directed = data.draw(st.booleans())
    policy = data.draw(st.sampled_from([p for p in POLICIES if not directed or p != "edge"]))
    limit = data.draw(st.integers(0, 4))
    graphs = check_graphs(data.draw(graph_lists(1, directed=directed)))
    edits = POLICIES[policy].edits(graphs)
    scratch = Scratch.of(graphs.num_nodes, graphs.num_edges)
    for s in range(edits.num_subgraphs):
        count = ego_net(s, limit, edits.kept, Edges.of(graphs), graphs.out_edge, Edited.of(edits), scratch)
        node, hop = scratch.found[:count], scratch.hops[:count]
        assert dict(zip(node.tolist(), hop.tolist())) == _search(graphs, edits, s, limit)
        assert (np.diff(hop) >= 0).all()  # nearest first
