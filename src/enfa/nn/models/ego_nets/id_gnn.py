"""ID-GNN: in the ego net of a node, messages from that node have weights of their own."""

from typing import Any

from torch import Tensor, nn

from enfa.nn.bag.bag import Bag
from enfa.nn.convs import make_conv
from enfa.nn.convs.base import make_norm
from enfa.nn.models.base import ConvLike, SubgraphLayer
from enfa.nn.models.ego_nets.base import EgoGNN
from enfa.nn.rowwise.rows import Rows

__all__ = ["IDGNN"]


class IdentityLayer(SubgraphLayer):
    """MSG_0 of all nodes but the root, MSG_1 of the root; then the conv, over a node's own message, too."""

    def __init__(self, others: nn.Module, root: nn.Module, *layer: Any) -> None:
        super().__init__(*layer)
        self.others, self.root = others, root

    def update(self, bag: Bag, h: Rows, edge: Rows | None) -> Rows:
        is_root: Any = bag.mark
        sent = (1 - is_root) * self.others(h) + is_root * self.root(h)  # MSG_{1[s = v]}(h_s): paper, Algorithm 1
        return super().update(bag, sent, edge)


class IDGNN(EgoGNN):
    """ID-GNN of You et al., "Identity-aware Graph Neural Networks", AAAI 2021: the full version, for subgraphs whose root is
    marked by 1 in one channel: ``EgoNets(hops, mark=True)``, or ``NodeMarking()`` for ego nets that are whole graphs.

    Args:
        pool: as in :class:`~enfa.NGNN`; ``"root"`` is the paper's, and the default.
        readout: as in :class:`~enfa.NGNN`.

    All other arguments are those of :class:`~enfa.DSGNN`; it takes neither ``bag`` nor other marks.
    """

    def __init__(
        self, in_channels: Any, hidden_channels: int, out_channels: int, num_layers: int, conv: ConvLike = "gin", *,
        pool: str = "root", mark_channels: int = 1, **options: Any,
    ) -> None:  # fmt: skip
        if mark_channels != 1:
            raise ValueError(f"Expected mark_channels=1, which marks the root, for IDGNN, got {mark_channels!r}")
        if "mark_every_layer" in options:
            raise TypeError("IDGNN reads the mark of the root in every layer and takes no mark_every_layer")
        super().__init__(in_channels, hidden_channels, out_channels, num_layers, conv, pool=pool, **options)

    def forward(self, bag: Bag) -> Tensor:
        if isinstance(bag, Bag) and len(bag.mark_rows) < 2:
            raise ValueError("Expected a policy that marks the root, such as EgoNets(hops, mark=True), for IDGNN, got no marks")
        return super().forward(bag)

    def layer(self, width: int, hidden: int, conv: ConvLike, edge_dim: int, norm: str | None, *options: Any) -> SubgraphLayer:
        own = make_conv(conv, hidden, hidden, edge_dim, norm), make_norm(norm, hidden)
        return IdentityLayer(nn.Linear(width, hidden), nn.Linear(width, hidden), *own, *options)
