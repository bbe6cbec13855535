"""GIN: Xu et al., "How Powerful are Graph Neural Networks?", ICLR 2019."""

import torch
from torch import Tensor, nn

from enfa.nn.convs.base import Conv, Degrees, mlp
from enfa.nn.ops.segment import gather, link_sum, merged_sum
from enfa.plan.links import Links

__all__ = ["GIN"]


class GIN(Conv):
    """MLP((1 + eps) x_v + sum of x_u over edges u -> v), with eps = 0, or learnt where ``train_eps``.

    ``relu``: messages are relu(x_u), as those of GINE are where edges have no attributes.
    """

    links: tuple[str, ...] = ("merged",)

    def __init__(
        self, in_channels: int, out_channels: int, edge_dim: int, norm: str | None, train_eps: bool = False, relu: bool = False
    ) -> None:
        super().__init__()
        self.eps = nn.Parameter(torch.zeros(1)) if train_eps else None
        self.relu = relu
        if train_eps or relu:
            self.links = ("self_row", "self", "incoming")
        self.update = mlp(in_channels, out_channels, norm)

    def messages(self, rows: Tensor, links: Links, edge: Tensor | None, degree: Degrees) -> Tensor:
        if self.eps is None and not self.relu:
            return merged_sum(rows, links)
        own = gather(rows, links.self_row, links.cache, "self")
        incoming = link_sum(rows.relu() if self.relu else rows, links)
        return incoming + (own if self.eps is None else (1 + self.eps) * own)
