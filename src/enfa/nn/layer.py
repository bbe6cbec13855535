"""One layer: from one table of rows to the next."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from enfa.nn.context import ContextBranch, bag_sum
from enfa.nn.convs import Conv
from enfa.nn.dropout import KeyedDropout
from enfa.nn.rows import Rows, made, rows_in_flight
from enfa.nn.segment import gather
from enfa.plan.derive import graph_degrees
from enfa.plan.table import Layer, Plan

__all__ = ["SubgraphLayer"]


class SubgraphLayer(nn.Module):
    """act(norm(conv(rows))), the context of each row's node, dropout, and a residual connection where widths agree."""

    def __init__(
        self, conv: Conv, norm: nn.Module, context: ContextBranch | None, dropout: KeyedDropout, residual: bool
    ) -> None:
        super().__init__()
        self.conv, self.norm, self.context, self.dropout = conv, norm, context, dropout
        self.residual = residual

    def forward(
        self,
        rows: Tensor,
        layer: Layer,
        plan: Plan,
        edge: Tensor | None,
        degree: Tensor | None,
        identities: Callable[[int], Tensor],
    ) -> Tensor:
        """``degree`` [R'] belongs to the table before; ``identities(k)`` are those of conv rows, contexts, table."""
        links, full, branch = layer.links, plan.kind == "full", self.context
        degrees = None if degree is None else (degree, degree.index_select(0, links.self_row))
        with rows_in_flight(Rows(layer.copies, plan.num_pairs, lambda: identities(0), full)) as call:
            activated = branch is None or not branch.before_activation
            conv = made(call, self.conv.normed(self.norm, activated, rows, links, edge, degrees), rows, edge)
        table = conv if layer.source is None else gather(conv, layer.source, layer.cache, "source")
        if branch is not None:
            table = table + self._context(branch, rows, conv, layer, plan, edge, identities)
            if branch.before_activation:
                table = torch.relu(table)
        with rows_in_flight(Rows(layer.copies, plan.num_pairs, lambda: identities(2), full)) as call:
            table = made(call, self.dropout(table), table)
        if self.residual and rows.shape[1] == table.shape[1]:
            table = table + gather(rows, layer.previous, layer.cache, "previous")
        return table

    @staticmethod
    def _context(
        branch: ContextBranch,
        rows: Tensor,
        conv: Tensor,
        layer: Layer,
        plan: Plan,
        edge: Tensor | None,
        identities: Callable[[int], Tensor],
    ) -> Tensor:
        context, seen = layer.context, layer.context_row
        assert context is not None and seen is not None
        encoded = bag_sum(rows if plan.spec.context == "input" else conv, context.sums, branch.mean)
        if branch.conv is not None:
            assert context.links is not None
            degrees = None
            if branch.conv.reads_degrees:
                degrees = graph_degrees(context.links, len(encoded))
            with rows_in_flight(Rows(context.copies, plan.num_nodes, lambda: identities(1), plan.kind == "full")) as call:
                norm = branch.norm or nn.Identity()
                read, encoded = encoded, branch.conv.normed(norm, False, encoded, context.links, edge, degrees)
                encoded = made(call, encoded, read, edge)
        return gather(encoded, seen, layer.cache, "seen")
