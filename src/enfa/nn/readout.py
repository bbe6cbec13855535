"""From tables of rows to one vector per subgraph, and from those to one per graph.

A subgraph's pool is its graph's base pool plus a delta: affected rows added, the base rows that they replace taken
away. Deltas are shared between subgraphs like rows are, so neither memory nor time is ever n squared. The maximum is no
sum: there the rows of each subgraph are listed with their multiplicities, those that were replaced left out.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from enfa.nn.context import bag_sum
from enfa.nn.segment import gather, segment_ids, segment_max, segment_sum, weighted_sum
from enfa.plan.kernels.slice import coalesce
from enfa.plan.make import unknown
from enfa.plan.table import Layer, Plan, Readout, Sums

__all__ = ["BAGS", "READOUTS", "lower", "node_means", "pool_bag", "pool_nodes", "readouts", "root_rows"]

POOLS = ("sum", "mean", "max")
READOUTS = (*POOLS, "root", "node")
BAGS = ("mean", "sum")


def _ptr(sorted_ids: Tensor, size: int) -> Tensor:
    ptr = sorted_ids.new_zeros(size + 1)
    torch.cumsum(torch.bincount(sorted_ids, minlength=size), 0, out=ptr[1:])
    return ptr


def _coalesced(ptr: Tensor, row: Tensor, count: Tensor) -> Sums:
    """Rows that an edit has not reached one layer earlier cancel: a shorter list of the same sums."""
    if row.device.type != "cpu":
        return Sums(ptr, row, count)
    new_ptr, new_row, new_count = torch.zeros_like(ptr), torch.empty_like(row), torch.empty_like(count)
    scratch = torch.empty(int(ptr.diff().max()) if len(ptr) > 1 else 0, dtype=torch.int64)
    length = coalesce(*(t.numpy() for t in (ptr, row, count, scratch, new_ptr, new_row, new_count)))
    return Sums(new_ptr, new_row[:length], new_count[:length])


def lower(readout: Readout, layer: Layer) -> Readout:
    """The same readout over the table before ``layer``: every row's own row one layer earlier."""
    before = layer.previous
    base = None if readout.base_row is None else before[readout.base_row]
    delta = _coalesced(readout.delta.ptr, before[readout.delta.row], readout.delta.count)
    root, nodes = readout.root_row, readout.nodes
    return replace(
        readout,
        base_row=base,
        delta=delta,
        root_row=None if root is None else before[root],
        nodes=None if nodes is None else _coalesced(nodes.ptr, before[nodes.row], nodes.count),
    )


def readouts(plan: Plan) -> list[Readout]:
    """Readouts of tables 1…L. Computed once per plan."""
    if "readouts" not in plan.cache:
        found = [plan.readout]
        for layer in reversed(plan.layers[1:]):
            found.insert(0, lower(found[0], layer))
        plan.cache["readouts"] = found
    return plan.cache["readouts"]


def _sum(table: Tensor, readout: Readout, num_graphs: int) -> Tensor:
    pool = gather(weighted_sum(table, readout.delta), readout.sub_delta, readout.cache, "delta")
    if readout.base_row is None:
        return pool
    cache = readout.cache
    if "base" not in cache:
        cache["base"] = _ptr(readout.node_graph, num_graphs)
    rows = gather(table, readout.base_row, cache, "base_row")
    base = segment_sum(rows, cache["base"], readout.node_graph)
    if readout.sub_base is None:
        return pool + gather(base, readout.sub_graph, cache, "sub_graph")
    base = torch.cat([base, base.new_zeros(1, base.shape[1])])
    return pool + gather(base, readout.sub_base, cache, "sub_base")


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
            ptr = _ptr(readout.node_graph, num_graphs)
            length = ptr.diff()[readout.sub_graph]
            if readout.sub_base is not None:
                length = length * (readout.sub_base < num_graphs)
            sub = torch.repeat_interleave(torch.arange(subs, device=device), length)
            first = torch.repeat_interleave(ptr[readout.sub_graph] - length.cumsum(0) + length, length)
            node = first + torch.arange(len(sub), device=device)
            key = torch.cat([key, sub * rows + readout.base_row[node]])
            count = torch.cat([count, torch.ones_like(node)])
        key, place = torch.unique(key, return_inverse=True)
        count = torch.zeros_like(key).index_add_(0, place, count)
        key, count = key[count > 0], count[count > 0]
        cache["multiset"] = _ptr(key // max(rows, 1), subs)
        cache["multiset.row"], cache["multiset.count"] = key % max(rows, 1), count
    return Sums(cache["multiset"], cache["multiset.row"], cache["multiset.count"])


def pool_nodes(table: Tensor, readout: Readout, num_graphs: int, how: str) -> Tensor:
    """[S, C]: the nodes of every subgraph pooled. An empty subgraph pools to zeros.

    ``"root"`` and ``"node"`` pool nothing: see :func:`root_rows` and :func:`node_means`.
    """
    if how == "root":
        return root_rows(table, readout)
    if how == "node":
        return node_means(table, readout)
    if how == "max":
        return segment_max(table, _multisets(readout, len(table), num_graphs))
    pool = _sum(table, readout, num_graphs)
    if how == "sum":
        return pool
    if how == "mean":
        return pool / readout.sub_size.clamp(min=1).to(table.dtype)[:, None]
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


def pool_bag(subgraphs: Tensor, readout: Readout, num_graphs: int, how: str) -> Tensor:
    """[G, C]: the subgraphs of every bag pooled."""
    ptr = _ptr(readout.sub_graph, num_graphs)
    pool = segment_sum(subgraphs, ptr, segment_ids(ptr, len(subgraphs)))
    if how == "sum":
        return pool
    if how == "mean":
        return pool / ptr.diff().clamp(min=1).to(pool.dtype)[:, None]
    raise unknown("bag", how, BAGS)
