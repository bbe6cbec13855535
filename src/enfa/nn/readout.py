"""From tables of rows to one vector per subgraph, and from those to one per graph.

A subgraph's pool is its graph's base pool plus a delta: affected rows added, the base rows that they replace taken away.
Deltas are shared between subgraphs like rows are, so neither memory nor time is ever n squared. The maximum is no sum:
there the rows of each subgraph are listed with their multiplicities, those that were replaced left out.
"""

from __future__ import annotations

import torch
from torch import Tensor

from enfa.nn.segment import apply_map, segment_max
from enfa.plan.derive import bag_map, multisets, pool_map, row_map
from enfa.plan.make import unknown
from enfa.plan.table import Readout

__all__ = ["BAGS", "READOUTS", "pool_bag", "pool_nodes"]

READOUTS = ("sum", "mean", "max")
BAGS = ("mean", "sum")


def pool_nodes(tables: list[Tensor], of_tables: list[Readout], num_graphs: int, how: str) -> Tensor:
    """[S, C]: the nodes of every subgraph pooled, one table beside the other. An empty subgraph pools to zeros."""
    pairs = list(zip(tables, of_tables))
    if how == "max":
        return _beside([segment_max(table, multisets(r, len(table), num_graphs)) for table, r in pairs])
    sums = _beside([apply_map(table, row_map(r, len(table), num_graphs)) for table, r in pairs])
    pool = apply_map(sums, pool_map(of_tables[-1], num_graphs))  # the same for all tables
    if how == "sum":
        return pool
    if how == "mean":
        return pool / of_tables[-1].sub_size.clamp(min=1).to(pool.dtype)[:, None]
    raise unknown("readout", how, READOUTS)


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
