"""The full plan: every row of every subgraph, as the conventional model computes them. The reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from enfa.edits import Edits
from enfa.graphs import GraphSet
from enfa.plan.arrays import tensor
from enfa.plan.expand import Expanded, edge_tables, expand, largest_values
from enfa.plan.spec import Spec
from enfa.plan.steps.full import graph_links, node_sums
from enfa.plan.table import Context, Layer, Links, Plan, Readout, Sums

__all__ = ["full_plan", "read_off"]


def read_off(graphs: GraphSet, edits: Edits, spec: Spec, bag: Expanded) -> dict[str, Any]:
    """The parts of a readout that ``spec.output`` asks for, for tables that start with all pairs."""
    if spec.output == "node":
        pairs = np.arange(bag.num_rows)
        return {"nodes": node_sums(bag.node, pairs, np.ones_like(pairs), graphs.num_nodes)}
    if spec.output == "graph":
        return {}
    assert edits.root is not None
    rooted = edits.root[:, 0] >= 0
    first = (bag.pair_ptr[:-1] - graphs.node_ptr[edits.graph])[rooted, None]
    return {"root_row": tensor(bag.place[edits.root[rooted] + first]), "root_node": tensor(edits.root[rooted])}


def full_plan(graphs: GraphSet, edits: Edits, spec: Spec) -> Plan:
    """Rows are (subgraph, node) pairs and the same in every table."""
    bag = expand(graphs, edits, spec.edge_attr)
    rows = np.arange(bag.num_rows)
    degree = np.bincount(bag.dst, minlength=bag.num_rows)
    links = Links(
        tensor(rows), tensor(np.concatenate([[0], np.cumsum(degree)])), tensor(bag.src), tensor(bag.kind)
    )
    ones = torch.ones(len(rows), dtype=torch.int32)  # the same for all layers
    context = None
    if spec.context is not None:
        sums = node_sums(bag.node, rows, np.ones_like(rows), graphs.num_nodes)
        encoder = graph_links(graphs, edits, spec.edge_attr) if spec.context_encoder else None
        context = Context(sums, encoder, torch.ones(graphs.num_nodes, dtype=torch.int64))
    seen = tensor(bag.node) if spec.context is not None else None
    attr, edge_mark = edge_tables(graphs.edge_attr, edits.edge_marks, spec.edge_attr)
    return Plan(
        kind="full",
        spec=spec,
        num_graphs=graphs.num_graphs,
        x=tensor(graphs.x),
        feature=tensor(graphs.node_kind[bag.node]),
        mark=tensor(bag.mark),
        marks=tensor(edits.marks),
        degree=tensor(degree) if spec.degrees else None,
        graph=tensor(graphs.graph[bag.node]) if spec.share == "graph" else None,
        edge_attr=None if attr is None else tensor(attr),
        edge_mark=tensor(edge_mark),
        layers=[Layer(links, ones, None, context, seen) for _ in range(spec.num_layers)],
        readout=Readout(
            base_row=None,
            base_graph=None,
            delta=Sums(tensor(bag.sub_ptr), tensor(rows), ones),
            sub_delta=tensor(np.arange(edits.num_subgraphs)),
            sub_graph=tensor(edits.graph),
            sub_size=tensor(np.diff(bag.sub_ptr)),
            **read_off(graphs, edits, spec, bag),
        ),
        limits=largest_values(graphs),
        num_pairs=bag.num_rows,
        num_nodes=graphs.num_nodes,
    ).check()
