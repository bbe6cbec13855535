"""The ego plan: ENFA as published (Eq. 3-5; Eq. 6 with a context).

Every table has a row for every (subgraph, node) pair, and the base rows of the original graphs behind them. In a layer,
message passing runs on the (L+1)-hop ego nets around the pivots and on the original graphs (Eq. 3, 4); then each row
beyond pivot hop i is replaced by its base row (Eq. 5), which is the gather ``source``. Cost: rows of the ego nets in
the convs, but n squared rows kept.

Where we differ: rows read their sources from the full table, so a directed graph, whose ego net may miss some
sources, is exact too; and degrees are those of the subgraph, so GCN is.
"""

from __future__ import annotations

import numpy as np
import torch

from enfa.edits import Edits
from enfa.graphs import GraphSet
from enfa.graphs.graphset import ranges
from enfa.plan.arrays import tensor
from enfa.plan.expand import Expanded, edge_tables, expand, largest_values
from enfa.plan.full import read_off
from enfa.plan.hops import PivotHops, pivot_hops
from enfa.plan.spec import Spec
from enfa.plan.steps.full import graph_links, node_sums
from enfa.plan.table import Context, Layer, Links, Plan, Readout, Sums

__all__ = ["ego_plan"]


def _ego_links(bag: Expanded, ego: np.ndarray, hop: np.ndarray, limit: int) -> tuple[np.ndarray, ...]:
    """In-edges of the ego rows: all of them up to hop ``limit - 1``, on the border only those from inside."""
    in_ptr = np.searchsorted(bag.dst, np.arange(bag.num_rows + 1))
    counts = np.diff(in_ptr)[ego]
    edges, target = ranges(in_ptr[ego], counts), np.repeat(np.arange(len(ego)), counts)
    inside = np.zeros(bag.num_rows, bool)
    inside[ego] = True
    keep = (hop[target] < limit) | inside[bag.src[edges]]
    edges = edges[keep]
    degree = np.bincount(target[keep], minlength=len(ego))
    return np.concatenate([[0], np.cumsum(degree)]), bag.src[edges], bag.kind[edges]


def ego_plan(graphs: GraphSet, edits: Edits, spec: Spec, hops: PivotHops | None = None) -> Plan:
    """``hops`` may come from an earlier plan with as many layers or more."""
    limit = spec.num_layers + 1
    hops = pivot_hops(graphs, edits, limit) if hops is None else hops.within(limit)
    bag = expand(graphs, edits, spec.edge_attr)
    pairs, nodes = bag.num_rows, graphs.num_nodes

    sub = np.repeat(np.arange(edits.num_subgraphs), np.diff(hops.ptr))
    ego = bag.place[bag.pair_ptr[sub] + hops.node - graphs.node_ptr[edits.graph[sub]]]
    ptr, src, kind = _ego_links(bag, ego, hops.hop, limit)
    base = graph_links(graphs, edits, spec.edge_attr, first=pairs)
    links = Links(
        torch.cat([tensor(ego), base.self_row]),
        torch.cat([tensor(ptr), base.in_ptr[1:].long() + int(ptr[-1])]),
        torch.cat([tensor(src), base.in_row]),
        torch.cat([tensor(kind), base.in_edge]),
    )
    seen = np.concatenate([bag.node, np.arange(nodes)])  # node of each row of a table
    encoder = graph_links(graphs, edits, spec.edge_attr) if spec.context_encoder else None
    layers = []
    for i in range(1, spec.num_layers + 1):
        near = np.flatnonzero(hops.hop <= i)
        source = len(ego) + seen  # Eq. 5: the base row …
        source[ego[near]] = near  # … except within i hops of a pivot
        of_base = np.bincount(bag.node, minlength=nodes) - np.bincount(hops.node[near], minlength=nodes)
        copies = np.concatenate([(hops.hop <= i).astype(np.int64), of_base])
        context = None
        if spec.context is not None:  # Eq. 6, over all pairs; the base rows behind them are not summed
            read = source[:pairs] if spec.context == "output" else np.arange(pairs)
            sums = node_sums(bag.node, read, np.ones(pairs, np.int64), nodes)
            context = Context(sums, encoder, torch.ones(nodes, dtype=torch.int64))
        layers.append(
            Layer(links, tensor(copies), tensor(source), context, None if context is None else tensor(seen))
        )
    degree = np.concatenate([np.bincount(bag.dst, minlength=pairs), np.diff(graphs.in_ptr)])
    attr, edge_mark = edge_tables(graphs.edge_attr, edits.edge_marks, spec.edge_attr)
    return Plan(
        kind="ego",
        spec=spec,
        num_graphs=graphs.num_graphs,
        x=tensor(graphs.x),
        feature=tensor(graphs.node_kind[seen]),
        mark=tensor(np.concatenate([bag.mark, np.zeros(nodes, np.int64)])),
        marks=tensor(edits.marks),
        degree=tensor(degree) if spec.degrees else None,
        graph=tensor(graphs.graph[seen]) if spec.share == "graph" else None,
        edge_attr=None if attr is None else tensor(attr),
        edge_mark=tensor(edge_mark),
        layers=layers,
        readout=Readout(
            base_row=None,
            base_graph=None,
            delta=Sums(tensor(bag.sub_ptr), tensor(np.arange(pairs)), torch.ones(pairs, dtype=torch.int64)),
            sub_delta=tensor(np.arange(edits.num_subgraphs)),
            sub_graph=tensor(edits.graph),
            sub_size=tensor(np.diff(bag.sub_ptr)),
            **read_off(graphs, edits, spec, bag),
        ),
        limits=largest_values(graphs),
        num_pairs=bag.num_rows,
        num_nodes=graphs.num_nodes,
    ).check()
