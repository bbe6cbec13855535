"""Subgraphormer: GNN-SSWL+ that attends to what it sums up, without positional encodings."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch_geometric.nn import GATConv, GATv2Conv, TransformerConv

from enfa.graphs.names import unknown
from enfa.graphs.numbers import whole
from enfa.nn.bag.bag import Bag
from enfa.nn.convs.base import make_norm, mlp
from enfa.nn.encode import OneHotEdges, SumEncoder
from enfa.nn.models.base import SubgraphGNN, SubgraphLayer
from enfa.nn.rowwise.rows import Rows

__all__ = ["Subgraphormer"]

ATTENTION: dict[str, Callable[..., nn.Module]] = {"gat": GATConv, "gatv2": GATv2Conv, "transformer": TransformerConv}


class AttentionLayer(SubgraphLayer):
    """act(norm(MLP of three things that a row (j, v) sees, beside each other)). ``bonds``: of both attentions, or None."""

    def __init__(self, between: nn.Module, bonds: nn.ModuleList | None, point: nn.Module, mix: nn.Module, *layer: Any) -> None:
        super().__init__(*layer)
        self.between, self.bonds, self.point, self.mix = between, bonds, point, mix
        self.eps = nn.Parameter(torch.zeros(1))

    def update(self, bag: Bag, h: Rows, edge: Rows | None) -> Rows:
        near, far = (None, None) if self.bonds is None else (bond(edge) for bond in self.bonds)
        within: Any = bag.propagate(self.conv, h, near)  # (j, u) for u in N(v), and itself
        between: Any = bag.propagate(self.between, h, far, along="subgraphs")  # (k, v) for k in N(j), and itself
        own: Any = bag.spread(bag.diagonal(h))  # (v, v)
        # h is taken to the table of all these, and no further one is made for h + own
        there: Any = bag.common([within, between, own], "+")
        point = self.point((1 + self.eps) * there.of(bag.moved(h, there.number)) + own)
        mixed: Any = self.mix(torch.cat([within, between, point], 1))
        return self.norm(mixed).relu()


class Subgraphormer(SubgraphGNN):
    """Subgraphormer of Bar-Shalom, Bevilacqua and Maron, "Subgraphormer: Unifying Subgraph GNNs and Graph Transformers via
    Graph Products", ICML 2024, without its positional encodings, for policies in which every node is the root of one subgraph.

    A row (j, v) starts as an embedding of v's features plus one of its mark. A layer is::

        h' = relu(norm(MLP([ attention to h(j, u) over edges u -> v
                           | attention to h(k, v) over edges k -> j between roots
                           | MLP((1 + eps) h + h(v, v)) ])))

    each of the three a third of the channels wide, the attentions with embeddings of bonds of their own behind a ReLU. The sum
    over each subgraph, then the mean over the bag, goes into the head.

    The authors' setting for ZINC: ``Subgraphormer([28], 96, 1, 6, edge_channels=[4], mark_channels=6)`` on
    ``NodeMarking(distances=4)``, in which distances of 5 and more are one. (Nodes that the root does not reach have an
    embedding of their own in the authors' code. Here they are as far as those; ZINC has none.)

    Args:
        conv: ``"gat"``, ``"gatv2"`` or ``"transformer"``: PyG's GATConv, GATv2Conv or TransformerConv. The first two put
            self-loops of their own in the place of the graphs', so graphs that have some are refused.
        heads: of each attention. hidden_channels is a multiple of 3 times as many.

    All other arguments are those of :class:`~enfa.DSGNN`.
    """

    encoders = (SumEncoder, OneHotEdges)
    head_width = 2

    def __init__(
        self, in_channels: Any, hidden_channels: int, out_channels: int, num_layers: int, conv: str = "gat",
        heads: int = 4, **options: Any,
    ) -> None:  # fmt: skip
        if conv not in ATTENTION:
            raise unknown("conv", conv, ATTENTION)
        self.heads, hidden = whole("heads", heads, 1), whole("hidden_channels", hidden_channels, 1)
        if hidden % (3 * self.heads):
            raise ValueError(f"Expected hidden_channels to be a multiple of 3 heads = {3 * self.heads}, got {hidden}")
        super().__init__(in_channels, hidden, out_channels, num_layers, conv, **options)

    def layer(self, width: int, hidden: int, conv: Any, edge_dim: int, norm: str | None, *options: Any) -> SubgraphLayer:
        third, bonds = hidden // 3, None
        if self.edge_encoder is not None:
            floats = isinstance(self.edge_encoder.channels, int)
            embed = [nn.Linear(edge_dim, hidden, bias=floats) for _ in range(2)]
            for one in embed if not floats else ():
                nn.init.xavier_uniform_(one.weight)  # as OGB draws bond embeddings
            bonds = nn.ModuleList(nn.Sequential(one, nn.ReLU()) for one in embed)
        attend = [
            ATTENTION[conv](width, third // self.heads, heads=self.heads, edge_dim=hidden if edge_dim else None)
            for _ in range(2)
        ]
        point, mix = mlp(width, third, norm, inside=width), mlp(hidden, hidden, norm)
        return AttentionLayer(attend[1], bonds, point, mix, attend[0], make_norm(norm, hidden), *options)

    def make_subgraph_mlp(self, pooled: int, hidden: int, norm: str | None) -> nn.Module:
        return nn.Identity() if pooled == hidden else nn.Linear(pooled, hidden)
