"""The subgraphs of every policy, written out and compared with explicit ones."""

from collections import Counter

import pytest
from cases import POLICIES
from hypothesis import given
from strategies import graph_lists
from subgraphs import bag
from torch_geometric.data import Data

import enfa
from enfa.graphs import check_graphs
from enfa.plan.reference.expand import expand
from enfa.testing import degenerate_graphs


def _written_out(graph: Data, policy: enfa.Policy) -> list[tuple]:
    graphs = check_graphs([graph])
    edits = policy.edits(graphs)
    found = expand(graphs, edits, True)
    marks = edits.marks
    subs = []
    for s in range(edits.num_subgraphs):
        rows = range(found.sub_ptr[s], found.sub_ptr[s + 1])
        nodes = [(int(found.node[r]), float(marks[found.mark[r], 0])) for r in rows]
        edges = [(int(found.node[a]), int(found.node[b])) for a, b in zip(found.src, found.dst) if found.sub[b] == s]
        subs.append((tuple(nodes), tuple(sorted(edges))))
        assert all(found.sub[a] == found.sub[b] for a, b in zip(found.src, found.dst))
    return subs


def _explicit(graph: Data, policy: str) -> list[tuple]:
    subs = []
    for one in bag(graph, policy):
        node = one.node.tolist()
        edges = [(node[a], node[b]) for a, b in one.edge_index.T.tolist()]
        subs.append((tuple(zip(node, one.mark[:, 0].tolist())), tuple(sorted(edges))))
    return subs


@pytest.mark.parametrize("policy", POLICIES)
@given(graphs=graph_lists(1))
def test_subgraphs_are_the_explicit_ones(policy: str, graphs: list[Data]) -> None:
    for graph in [*graphs, *degenerate_graphs(1).values()]:
        assert Counter(_written_out(graph, POLICIES[policy])) == Counter(_explicit(graph, policy))


@pytest.mark.parametrize("policy", ["mark", "delete", "isolate"])
@given(graphs=graph_lists(1, directed=True))
def test_subgraph_r_is_about_node_r(policy: str, graphs: list[Data]) -> None:
    for graph in graphs:
        assert _written_out(graph, POLICIES[policy]) == _explicit(graph, policy)
