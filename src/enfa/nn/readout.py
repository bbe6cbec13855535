"""From tables of rows to one vector per subgraph, and from those to one per graph.

A subgraph's pool is its graph's base pool plus a delta: affected rows added, the base rows that they replace taken away.
Deltas are shared between subgraphs like rows are, so neither memory nor time is ever n squared. The maximum is no sum:
there the rows of each subgraph are listed with their multiplicities, those that were replaced left out.
"""

from __future__ import annotations

import torch
from torch import Tensor

from enfa.nn.segment import apply_map, segment_max
from enfa.plan.derive import bag_map, pool_map, row_map, sorted_ptr
from enfa.plan.make import unknown
from enfa.plan.table import Readout, Sums

__all__ = ["BAGS", "READOUTS", "pool_bag", "pool_nodes"]

READOUTS = ("sum", "mean", "max")
BAGS = ("mean", "sum")


def _multisets(readout: Readout, rows: int, num_graphs: int) -> Sums:
    """The rows of every subgraph with their multiplicities, all > 0. As long as the bags: n squared at worst."""
    cache, delta = readout.cache, readout.delta
    if "multiset" not in cache:
        subs, device = len(readout.sub_delta), readout.sub_delta.device
        length = delta.ptr.diff()[readout.sub_delta]
        sub = torch.repeat_interleave(torch.arange(subs, device=device), length)
        first = torch.repeat_interleave(delta.ptr[readout.sub_delta] - length.cumsum(0) + length, length)
        entry = first + torch.arange(len(sub), device=device)
        key, count = sub * rows + delta.row[entry], delta.count[entry]
        if readout.base_row is not None:
            ptr = sorted_ptr(readout.node_graph, num_graphs)
            length = ptr.diff()[readout.sub_graph]
            sub = torch.repeat_interleave(torch.arange(subs, device=device), length)
            first = torch.repeat_interleave(ptr[readout.sub_graph] - length.cumsum(0) + length, length)
            node = first + torch.arange(len(sub), device=device)
            key = torch.cat([key, sub * rows + readout.base_row[node]])
            count = torch.cat([count, torch.ones_like(node)])
        key, place = torch.unique(key, return_inverse=True)
        count = torch.zeros_like(key).index_add_(0, place, count)
        key, count = key[count > 0], count[count > 0]
        cache["multiset"] = sorted_ptr(key // max(rows, 1), subs)
        cache["multiset.row"], cache["multiset.count"] = key % max(rows, 1), count
    return Sums(cache["multiset"], cache["multiset.row"], cache["multiset.count"])


def pool_nodes(table: Tensor, readout: Readout, num_graphs: int, how: str) -> Tensor:
    """[S, C]: the nodes of every subgraph pooled. An empty subgraph pools to zeros."""
    if how == "max":
        return segment_max(table, _multisets(readout, len(table), num_graphs))
    sums = apply_map(table, row_map(readout, len(table), num_graphs))
    pool = apply_map(sums, pool_map(readout, num_graphs))
    if how == "sum":
        return pool
    if how == "mean":
        return pool / readout.sub_size.clamp(min=1).to(table.dtype)[:, None]
    raise unknown("readout", how, READOUTS)


def pool_bag(subgraphs: Tensor, readout: Readout, num_graphs: int, how: str) -> Tensor:
    """[G, C]: the subgraphs of every bag pooled."""
    both = bag_map(readout, num_graphs)
    pool = apply_map(subgraphs, both)
    if how == "sum":
        return pool
    if how == "mean":
        return pool / both.forward.ptr.diff().clamp(min=1).to(pool.dtype)[:, None]
    raise unknown("bag", how, BAGS)
