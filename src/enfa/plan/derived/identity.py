"""A number for every row that is the same in every plan: a hash of what the row is computed from.

Only dropout asks for it. Two different rows may, with probability 2^-64, get the same number; they then share a mask
and nothing else.
"""

import torch
from torch import Tensor

from enfa.plan.derived import _identity as kernels
from enfa.plan.derived.maps import segment_ids, target_rows
from enfa.plan.links import Links, Sums
from enfa.plan.table import Plan

__all__ = ["MULTIPLIERS", "mix64", "over_links", "step_identities"]

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


def _summed(before: Tensor, sums: Sums) -> Tensor:
    """Linear in the counts, so that a pool may be written as a sum of lists."""
    segment = segment_ids(sums.ptr, len(sums.row))
    return before.new_zeros(len(sums.ptr) - 1).index_add_(0, segment, before[sums.row] * sums.count)


def _start(plan: Plan) -> Tensor:
    now = content(plan.x_rows)[plan.feature] + mix64(plan.marked, 11)
    if plan.degrees is not None:
        now = now + mix64(plan.degrees, 37)
    if plan.of_graph is not None:
        # the place in the dataset where it is known: masks then depend neither on batches nor on ranks
        graph = plan.of_graph if plan.graph_ids is None else plan.graph_ids[plan.of_graph]
        now = now + mix64(graph, 19)
    return mix64(now)


def step_identities(plan: Plan, number: int) -> Tensor:
    """int64 [R]: of the rows of one step. Kept with the plan."""
    table, step = plan.tables[number], plan.program.steps[number]
    if f"identity {number}" in plan.cache:
        return plan.cache[f"identity {number}"]
    read = [step_identities(plan, r) for r in step.reads]
    if step.op == "start":
        found = _start(plan)
    elif table.links is not None:
        edge = mix64(content(plan.edge_mark_rows), 23)
        if plan.edge_rows is not None:
            edge = edge + mix64(content(plan.edge_rows), 27)
        found = over_links(read[0], table.links, edge if step.edges else torch.zeros_like(edge))
    elif table.sums is not None:
        found = _summed(mix64(read[0], 7), table.sums)
        found = mix64(found if table.parts is None else _summed(found, table.parts))
    else:
        found = mix64(read[0][table.own], 5)
        if table.other is not None:
            found = mix64(found + mix64(read[1][table.other], 31))
    plan.cache[f"identity {number}"] = found  # not with the table, which several steps may share
    return found
