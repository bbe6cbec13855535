"""GCN: Kipf and Welling, "Semi-Supervised Classification with Graph Convolutional Networks", ICLR 2017."""

from torch import Tensor, nn

from enfa.nn.convs.base import Conv, Degrees
from enfa.nn.ops.segment import merged_sum
from enfa.plan.links import Links

__all__ = ["GCN"]


class GCN(Conv):
    """W (x_v / d_v + sum of x_u / sqrt(d_u d_v) over edges u -> v) + b, with d the in-degree plus one.

    Degrees are those of the subgraph. The added loop counts also where the graph has loops of its own.
    """

    reads_degrees = True
    links = ("merged",)

    def __init__(self, in_channels: int, out_channels: int, edge_dim: int, norm: str | None) -> None:
        super().__init__()
        self.update = nn.Linear(in_channels, out_channels)

    def messages(self, rows: Tensor, links: Links, edge: Tensor | None, degree: Degrees) -> Tensor:
        assert degree is not None
        before, here = ((d.to(rows.dtype) + 1).rsqrt() for d in degree)
        return here * merged_sum(rows * before, links)
