"""A number for every row that is the same in every plan: a hash of what the row is computed from.

Only dropout asks for it. Two different rows may, with probability 2^-64, get the same number; they then share a mask
and nothing else.
"""

from __future__ import annotations

import torch
from torch import Tensor

from enfa.plan.derive import segment_ids, target_rows
from enfa.plan.kernels import identity as kernels
from enfa.plan.table import Links, Plan, Sums

__all__ = ["MULTIPLIERS", "content", "mix64", "over_links", "row_identities"]

MULTIPLIERS = (-0x4B47D0C5A1F2E9A3, -0x61C8864680B583EB, 0x2545F4914F6CDD1D)


def mix64(value: Tensor, salt: int | Tensor = 0) -> Tensor:
    """Scramble int64 numbers: equal ones stay equal, others spread evenly. Products wrap round."""
    value = (value + salt) * MULTIPLIERS[0]
    value = (value ^ ((value >> 29) & 0x7FFFFFFFF)) * MULTIPLIERS[1]
    value = (value ^ ((value >> 32) & 0xFFFFFFFF)) * MULTIPLIERS[2]
    return value ^ ((value >> 29) & 0x7FFFFFFFF)


def content(values: Tensor) -> Tensor:
    """int64 [n]: a number per feature row, from its bits."""
    values = values.detach()
    if values.is_floating_point():
        values = values.double().view(torch.int64)
    column = mix64(torch.arange(values.shape[1], device=values.device), 17)
    return mix64(values + column).sum(1) if values.shape[1] else values.new_zeros(len(values))


def over_links(before: Tensor, links: Links, edge: Tensor) -> Tensor:
    """Of rows that pass messages, from the identities ``before`` and a number for every edge kind."""
    if before.device.type == "cpu":
        out = torch.empty(links.num_rows, dtype=torch.int64)
        raw = (before, links.self_row, links.in_ptr, links.in_row, links.in_edge, edge, out)
        kernels.over_links(*(t.numpy() for t in raw))
        return out
    return _over_links_there(before, links, edge)


def _over_links_there(before: Tensor, links: Links, edge: Tensor) -> Tensor:
    """The same on other devices."""
    message = mix64(before[links.in_row] + edge[links.in_edge], 3)
    total = before.new_zeros(links.num_rows).index_add_(0, target_rows(links), message)
    return mix64(mix64(before[links.self_row], 5) + total)


def _over_sums(before: Tensor, sums: Sums) -> Tensor:
    each = mix64(before[sums.row], 7) * sums.count
    segment = segment_ids(sums.ptr, len(sums.row))
    return mix64(before.new_zeros(len(sums.ptr) - 1).index_add_(0, segment, each))


def row_identities(plan: Plan) -> list[tuple[Tensor, Tensor, Tensor]]:
    """For layers 1…L the identities of (conv rows, contexts, table rows). Computed once per plan."""
    if "identities" in plan.cache:
        return plan.cache["identities"]
    now = content(plan.x)[plan.feature] + mix64(plan.mark, 11)
    if plan.degree is not None:
        now = now + mix64(plan.degree, 13)
    if plan.graph is not None:
        # the place in the dataset where it is known: masks then depend neither on batches nor on ranks
        graph = plan.graph if plan.graph_ids is None else plan.graph_ids[plan.graph]
        now = now + mix64(graph, 19)
    now = mix64(now)
    edge = mix64(content(plan.edge_mark), 23)
    if plan.edge_attr is not None:
        edge = edge + content(plan.edge_attr)
    found = []
    for layer in plan.layers:
        conv = over_links(now, layer.links, edge)
        table = conv if layer.source is None else conv[layer.source]
        seen = conv[:0]
        if layer.context is not None and layer.context_row is not None:
            seen = _over_sums(now if plan.spec.context == "input" else conv, layer.context.sums)
            if layer.context.links is not None:
                seen = over_links(seen, layer.context.links, edge)
            table = mix64(table + mix64(seen[layer.context_row], 29))
        found.append((conv, seen, table))
        now = table
    plan.cache["identities"] = found
    return found
