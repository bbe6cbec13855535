"""From tables of rows to one vector per subgraph, and from those to one per graph.

A subgraph's pool is its graph's base pool plus a delta: affected rows added, the base rows that they replace taken
away. Deltas are shared between subgraphs like rows are, so neither memory nor time is ever n squared. The maximum is no
sum: there the rows of each subgraph are listed with their multiplicities, those that were replaced left out.
"""

from __future__ import annotations

import torch
from torch import Tensor

from enfa.nn.context import bag_sum
from enfa.nn.segment import apply_map, gather, segment_max
from enfa.plan.derive import bag_map, multisets, pool_map, row_map
from enfa.plan.make import unknown
from enfa.plan.table import Readout

__all__ = ["BAGS", "READOUTS", "node_means", "pool_bag", "pool_nodes", "root_rows"]

POOLS = ("sum", "mean", "max")
READOUTS = (*POOLS, "root", "node")
BAGS = ("mean", "sum")


def pool_nodes(tables: list[Tensor], of_tables: list[Readout], num_graphs: int, how: str) -> Tensor:
    """[S, C]: the nodes of every subgraph pooled, one table beside the other. An empty subgraph pools to zeros.

    ``"root"`` and ``"node"`` pool nothing: see :func:`root_rows` and :func:`node_means`.
    """
    pairs = list(zip(tables, of_tables))
    if how == "root":
        return _beside([root_rows(table, r) for table, r in pairs])
    if how == "node":
        return _beside([node_means(table, r) for table, r in pairs])
    if how == "max":
        return _beside([segment_max(table, multisets(r, len(table), num_graphs)) for table, r in pairs])
    sums = _beside([apply_map(table, row_map(r, len(table), num_graphs)) for table, r in pairs])
    pool = apply_map(sums, pool_map(of_tables[-1], num_graphs))  # the same for all tables
    if how == "sum":
        return pool
    if how == "mean":
        return pool / of_tables[-1].sub_size.clamp(min=1).to(pool.dtype)[:, None]
    raise unknown("readout", how, POOLS)


def root_rows(table: Tensor, readout: Readout) -> Tensor:
    """[T, C]: the row of every subgraph's root in that subgraph; the sum of both for an edge's two ends."""
    if readout.root_row is None:
        raise ValueError("Expected a plan made with output='root' in its spec, got one without roots")
    roots, width = readout.root_row.shape
    rows = gather(table, readout.root_row.reshape(-1), readout.cache, "root")
    return rows.reshape(roots, width, table.shape[1]).sum(1)


def node_means(table: Tensor, readout: Readout) -> Tensor:
    """[N, C]: every node's mean over the subgraphs that contain it; zeros where none does."""
    if readout.nodes is None:
        raise ValueError("Expected a plan made with output='node' in its spec, got one without sums over nodes")
    return bag_sum(table, readout.nodes, mean=True)


def _beside(parts: list[Tensor]) -> Tensor:
    return torch.cat(parts, 1) if len(parts) > 1 else parts[0]


def pool_bag(subgraphs: Tensor, readout: Readout, num_graphs: int, how: str) -> Tensor:
    """[G, C]: the subgraphs of every bag pooled."""
    both = bag_map(readout, num_graphs)
    pool = apply_map(subgraphs, both)
    if how == "sum":
        return pool
    if how == "mean":
        return pool / both.forward.ptr.diff().clamp(min=1).to(pool.dtype)[:, None]
    raise unknown("bag", how, BAGS)
