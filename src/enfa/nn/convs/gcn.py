"""GCN: Kipf and Welling, "Semi-Supervised Classification with Graph Convolutional Networks", ICLR 2017."""

from __future__ import annotations

from torch import Tensor, nn

from enfa.nn.convs.base import Conv
from enfa.nn.segment import merged_sum
from enfa.plan.table import Links

__all__ = ["GCN"]


class GCN(Conv):
    """W (x_v / d_v + sum of x_u / sqrt(d_u d_v) over edges u -> v) + b, with d the in-degree plus one.

    Degrees are those of the subgraph. The added loop counts also where the graph has loops of its own.
    """

    reads_degrees = True
    links = frozenset({"merged"})

    def __init__(self, in_channels: int, out_channels: int, edge_dim: int, norm: str | None) -> None:
        super().__init__(in_channels, out_channels, edge_dim, norm)
        self.linear = nn.Linear(in_channels, out_channels)

    @property
    def update(self) -> nn.Module:
        return self.linear

    def hidden(
        self, rows: Tensor, links: Links, edge: Tensor | None, degree: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        assert degree is not None
        before, here = ((d.to(rows.dtype) + 1).rsqrt()[:, None] for d in degree)
        scaled = rows * before
        return here * merged_sum(scaled, links)
