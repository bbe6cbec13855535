"""GINE: Hu et al., "Strategies for Pre-training Graph Neural Networks", ICLR 2020, as OGB uses it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from enfa.nn.convs.base import MLP, Conv
from enfa.nn.segment import gather, segment_sum, target_rows
from enfa.nn.triton import accelerated
from enfa.plan.derive import kind_lists, merged_map
from enfa.plan.table import Links

__all__ = ["GINE"]


class GINE(Conv):
    """MLP(x_v + sum of relu(x_u + W e_uv) over edges u -> v), with eps = 0."""

    reads_edges = True
    needs_edges = True
    links = frozenset({"merged kinds", "kinds"})

    def __init__(self, in_channels: int, out_channels: int, edge_dim: int, norm: str | None) -> None:
        super().__init__(in_channels, out_channels, edge_dim, norm)
        self.edge = nn.Linear(edge_dim, in_channels)
        self.mlp = MLP(in_channels, out_channels, norm)

    @property
    def last(self) -> nn.Linear:
        return self.mlp[3]  # type: ignore[return-value]

    def hidden(
        self, rows: Tensor, links: Links, edge: Tensor | None, degree: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        assert edge is not None
        features = self.edge(edge)
        if accelerated(rows):
            from enfa.nn.triton.gine import gine_sum

            merged, kinds = merged_map(links, len(rows), kinds=True), kind_lists(links, len(edge))
            return self.mlp.hidden(gine_sum(rows, features, merged, kinds))
        sent = gather(rows, links.in_row, links.cache, "in")  # [M, in]
        message = torch.relu(sent + gather(features, links.in_edge, links.cache, "edge"))
        incoming = segment_sum(message, links.in_ptr, target_rows(links))
        return self.mlp.hidden(gather(rows, links.self_row, links.cache, "self") + incoming)
