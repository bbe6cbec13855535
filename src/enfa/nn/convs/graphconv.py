"""GraphConv: Morris et al., "Weisfeiler and Leman Go Neural", AAAI 2019."""

from torch import Tensor, nn

from enfa.nn.convs.base import Conv, Degrees
from enfa.nn.ops.segment import gather, link_sum
from enfa.plan.links import Links

__all__ = ["GraphConv"]


class GraphConv(Conv):
    """W1 x_v + W2 (sum of x_u over edges u -> v) + b."""

    links = ("self_row", "self", "incoming")

    def __init__(self, in_channels: int, out_channels: int, edge_dim: int, norm: str | None) -> None:
        super().__init__()
        self.own = nn.Linear(in_channels, out_channels, bias=False)
        self.incoming = nn.Linear(in_channels, out_channels)
        self.update = nn.Identity()

    def messages(self, rows: Tensor, links: Links, edge: Tensor | None, degree: Degrees) -> Tensor:
        return self.own(gather(rows, links.self_row, links.cache, "self")) + self.incoming(link_sum(rows, links))
