"""The full plan: every row of every subgraph, as the conventional model computes them. The reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from enfa.edits import Edits
from enfa.graphs import GraphSet
from enfa.plan.expand import Expanded, edge_tables, expand, largest_values
from enfa.plan.spec import Spec
from enfa.plan.table import Context, Layer, Links, Plan, Readout, Sums

__all__ = ["full_plan", "graph_links", "node_sums", "read_off", "tensor"]


def tensor(array: np.ndarray) -> torch.Tensor:
    """int64 for index arrays, whatever they were; copies only where it must."""
    if array.dtype.kind in "iu" and array.dtype != np.int64:
        array = array.astype(np.int64)
    return torch.from_numpy(array if array.flags.c_contiguous else np.ascontiguousarray(array))


def node_sums(node: np.ndarray, row: np.ndarray, count: np.ndarray, nodes: int) -> Sums:
    """For every node the sum of its rows."""
    order = np.argsort(node, kind="stable")
    ptr = np.concatenate([[0], np.cumsum(np.bincount(node, minlength=nodes))])
    return Sums(tensor(ptr), tensor(row[order]), tensor(count[order]))


def graph_links(graphs: GraphSet, edits: Edits, spec: Spec, first: int = 0) -> Links:
    """A layer over the original graphs, whose nodes are rows ``first``, ``first + 1``, … of the table before."""
    kind = graphs.edge_kind * len(edits.edge_marks) if spec.edge_attr else np.zeros(graphs.num_edges, np.int64)
    own = np.arange(graphs.num_nodes) + first
    return Links(tensor(own), tensor(graphs.in_ptr), tensor(graphs.src + first), tensor(kind))


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
    bag = expand(graphs, edits, spec)
    rows = np.arange(bag.num_rows)
    degree = np.bincount(bag.dst, minlength=bag.num_rows)
    links = Links(
        tensor(rows), tensor(np.concatenate([[0], np.cumsum(degree)])), tensor(bag.src), tensor(bag.kind)
    )
    ones = torch.ones(len(rows), dtype=torch.int32)  # the same for all layers
    context = None
    if spec.context is not None:
        sums = node_sums(bag.node, rows, np.ones_like(rows), graphs.num_nodes)
        encoder = graph_links(graphs, edits, spec) if spec.context_encoder else None
        context = Context(sums, encoder, torch.ones(graphs.num_nodes, dtype=torch.int64))
    seen = tensor(bag.node) if spec.context is not None else None
    attr, edge_mark = edge_tables(graphs.edge_attr, edits.edge_marks, spec)
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
