"""A number for every row of a step that is the same in every plan, for dropout: a hash of what the row is computed from."""

from __future__ import annotations

import torch
from torch import Tensor

from enfa.plan.derive import segment_ids
from enfa.plan.identity import content, mix64, over_links
from enfa.plan.steps.table import StepPlan
from enfa.plan.table import Sums

__all__ = ["step_identities"]


def _summed(before: Tensor, sums: Sums) -> Tensor:
    """Linear in the counts, so that a pool may be written as a sum of lists."""
    segment = segment_ids(sums.ptr, len(sums.row))
    return before.new_zeros(len(sums.ptr) - 1).index_add_(0, segment, before[sums.row] * sums.count)


def _start(plan: StepPlan) -> Tensor:
    now = content(plan.x_rows)[plan.feature] + mix64(plan.marked, 11)
    if plan.degrees is not None:
        now = now + mix64(plan.degrees, 37)
    if plan.of_graph is not None:
        # the place in the dataset where it is known: masks then depend neither on batches nor on ranks
        graph = plan.of_graph if plan.graph_ids is None else plan.graph_ids[plan.of_graph]
        now = now + mix64(graph, 19)
    return mix64(now)


def step_identities(plan: StepPlan, number: int) -> Tensor:
    """int64 [R]: of the rows of one step. Kept with the plan."""
    table, step = plan.tables[number], plan.program.steps[number]
    if "identity" in table.cache:
        return table.cache["identity"]
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
    table.cache["identity"] = found
    return found
