"""GIN: Xu et al., "How Powerful are Graph Neural Networks?", ICLR 2019."""

from __future__ import annotations

from torch import Tensor

from enfa.nn.convs.base import Conv, Degrees, mlp
from enfa.nn.ops.segment import merged_sum
from enfa.plan.links import Links

__all__ = ["GIN"]


class GIN(Conv):
    """MLP(x_v + sum of x_u over edges u -> v), with eps = 0."""

    links = ("merged",)

    def __init__(self, in_channels: int, out_channels: int, edge_dim: int, norm: str | None) -> None:
        super().__init__()
        self.update = mlp(in_channels, out_channels, norm)

    def messages(self, rows: Tensor, links: Links, edge: Tensor | None, degree: Degrees) -> Tensor:
        return merged_sum(rows, links)
