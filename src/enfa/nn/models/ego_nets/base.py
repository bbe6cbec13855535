"""What models of ego nets have in common: what is read of a subgraph is what its root is."""

from typing import Any

import torch
from torch import Tensor, nn

from enfa.graphs.numbers import whole
from enfa.nn.bag.bag import Bag
from enfa.nn.convs import make_conv
from enfa.nn.convs.base import make_norm
from enfa.nn.models.base import ConvLike, SubgraphGNN, SubgraphLayer, check_choices
from enfa.nn.rowwise.rows import Rows

__all__ = ["EGO_READOUTS", "EgoGNN"]

EGO_POOLS = ("sum", "mean", "max", "root")
EGO_READOUTS = ("sum", "mean", "max", "node")


class MarkedLayer(SubgraphLayer):
    """Reads the marks beside the rows, again in every layer."""

    def __init__(self, mark: nn.Module, *layer: Any) -> None:
        super().__init__(*layer)
        self.mark = mark

    def update(self, bag: Bag, h: Rows, edge: Rows | None) -> Rows:
        marked: Any = torch.cat([h, self.mark(bag.mark)], 1)  # type: ignore[list-item]
        return super().update(bag, marked, edge)


class EgoGNN(SubgraphGNN):
    """Message passing in every subgraph, a pool over its nodes that is what its root is, a pool over the roots, an MLP.

    Abstract: use :class:`~enfa.NGNN`, :class:`~enfa.IDGNN` or :class:`~enfa.I2GNN`, which say what the arguments mean.
    """

    def __init__(
        self, in_channels: Any, hidden_channels: int, out_channels: int, num_layers: int, conv: ConvLike = "gin", *,
        pool: str = "mean", readout: str = "mean", mark_every_layer: bool = False, mark_channels: int = 1, **options: Any,
    ) -> None:  # fmt: skip
        check_choices(pool=(pool, EGO_POOLS), readout=(readout, EGO_READOUTS))
        if "bag" in options:
            raise TypeError(f"{type(self).__name__} takes no bag: readout says what is made of the roots of a bag")
        self.pool, self.mark_every_layer = pool, mark_every_layer
        self.marks = whole("mark_channels", mark_channels, 1 if mark_every_layer else 0)
        first = in_channels, hidden_channels, out_channels, num_layers, conv
        super().__init__(*first, readout=readout, mark_channels=mark_channels, **options)

    def layer(self, width: int, hidden: int, conv: ConvLike, edge_dim: int, norm: str | None, *options: Any) -> SubgraphLayer:
        if not self.mark_every_layer:
            return super().layer(width, hidden, conv, edge_dim, norm, *options)
        own = make_conv(conv, 2 * width, hidden, edge_dim, norm), make_norm(norm, hidden)
        return MarkedLayer(nn.Linear(self.marks, width), *own, *options)

    def about(self, bag: Bag, h: Rows) -> Rows:
        """Of every subgraph what it makes of its root."""
        return self.subgraph_mlp(bag.root(h) if self.pool == "root" else bag.pool(h, self.pool))

    def _read_out(self, bag: Bag, h: Rows) -> Tensor:
        about = self.about(bag, h)
        if self.readout == "node":
            return bag.each(bag.pool(about, "sum", to="nodes"))
        return bag.pool(about, self.readout)  # every node is the root of one subgraph
