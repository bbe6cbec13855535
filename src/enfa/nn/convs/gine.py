"""GINE: Hu et al., "Strategies for Pre-training Graph Neural Networks", ICLR 2020, as OGB uses it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from enfa.nn.convs.base import Conv, mlp
from enfa.nn.segment import gather, segment_sum, target_rows
from enfa.plan.table import Links

__all__ = ["GINE"]


class GINE(Conv):
    """MLP(x_v + sum of relu(x_u + W e_uv) over edges u -> v), with eps = 0."""

    reads_edges = True
    needs_edges = True

    def __init__(self, in_channels: int, out_channels: int, edge_dim: int, norm: str | None) -> None:
        super().__init__(in_channels, out_channels, edge_dim, norm)
        self.edge = nn.Linear(edge_dim, in_channels)
        self.mlp = mlp(in_channels, out_channels, norm)

    def forward(
        self, rows: Tensor, links: Links, edge: Tensor | None, degree: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        assert edge is not None
        sent = gather(rows, links.in_row, links.cache, "in")  # [M, in]
        message = torch.relu(sent + gather(self.edge(edge), links.in_edge, links.cache, "edge"))
        incoming = segment_sum(message, links.in_ptr, target_rows(links))
        return self.mlp(gather(rows, links.self_row, links.cache, "self") + incoming)
