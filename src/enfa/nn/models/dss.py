"""DSS-GNN: in every layer, a node also sees itself in the other subgraphs of the bag."""

from typing import Any

from torch import nn

from enfa.graphs.names import unknown
from enfa.nn.bag.bag import Bag
from enfa.nn.bag.branches import Branches, computed, fan, started
from enfa.nn.convs import make_conv
from enfa.nn.convs.base import make_norm
from enfa.nn.models.base import ConvLike, SubgraphGNN, SubgraphLayer
from enfa.nn.rowwise.rows import Rows

__all__ = ["DSSGNN"]

CONTEXTS = ("dss", "identity", "mpnn")


class ContextLayer(SubgraphLayer):
    """Adds something of the same node in the other subgraphs. ``encoder``: a conv on the original graph, and a norm."""

    def __init__(self, context: str, encoder: nn.ModuleList, *layer: Any) -> None:
        super().__init__(*layer)
        self.context, self.encoder = context, encoder

    def update(self, bag: Bag, h: Rows, edge: Rows | None) -> Rows:
        if self.context == "dss":  # relu(bn(conv(x)) + bn'(conv'(mean_k x_k))[v])
            one, two = fan(h, 2)
            with Branches(h, self.conv, self.norm, self.encoder) as beside:
                with beside(edge):
                    seen: Any = computed(self._encoded(bag, bag.across(two, "mean"), edge))
                out = started(self.norm(bag.propagate(self.conv, one, edge)))
            return (out + bag.spread(seen)).relu()
        out = self.norm(bag.propagate(self.conv, h, edge)).relu()  # H_j + Enc(sum_k H_k)
        return out + bag.spread(self._encoded(bag, bag.across(out, "sum"), edge))

    def _encoded(self, bag: Bag, seen: Rows, edge: Rows | None) -> Rows:
        if not len(self.encoder):
            return seen
        conv, norm = self.encoder
        return norm(bag.propagate(conv, seen, edge))


class DSSGNN(SubgraphGNN):
    """DSS-GNN of Bevilacqua et al., ICLR 2022, and the cross-subgraph message passing of the ENFA paper (Eq. 6).

    Args:
        context: ``"dss"``: relu(bn(conv(x)) + bn'(conv'(mean_k x_k))[v]), ESAN's layer; ``"identity"``: H_j + the sum
            of all H_k; ``"mpnn"``: H_j + Enc(sum_k H_k), with Enc a conv of the same type on the original graph.

    All other arguments are those of :class:`~enfa.DSGNN`.
    """

    def __init__(
        self, in_channels: Any, hidden_channels: int, out_channels: int, num_layers: int, conv: ConvLike = "gin",
        context: str = "dss", **options: Any,
    ) -> None:  # fmt: skip
        if context not in CONTEXTS:
            raise unknown("context", context, CONTEXTS)
        self.context = context
        super().__init__(in_channels, hidden_channels, out_channels, num_layers, conv, **options)

    def layer(self, width: int, hidden: int, conv: ConvLike, edge_dim: int, norm: str | None, *options: Any) -> SubgraphLayer:
        encoder: list[nn.Module] = []
        if self.context != "identity":
            # Eq. 6 adds to a layer's output, ESAN's layer reads its input
            read = width if self.context == "dss" else hidden
            encoder = [make_conv(conv, read, hidden, edge_dim, norm), make_norm(norm, hidden)]
        own = make_conv(conv, width, hidden, edge_dim, norm), make_norm(norm, hidden)
        return ContextLayer(self.context, nn.ModuleList(encoder), *own, *options)
