"""GNN-AK+: a GNN on the ego net of every node is the kernel that makes the node's next row."""

from typing import Any

import torch
from torch import Tensor, nn

from enfa.graphs.numbers import whole
from enfa.nn.bag.bag import Bag, check_plan
from enfa.nn.convs import CONVS, make_conv
from enfa.nn.convs.base import make_norm
from enfa.nn.cuda.captures import Captures
from enfa.nn.encode import EdgeEncoder, NodeEncoder
from enfa.nn.models.base import ConvLike, SubgraphLayer, check_choices, check_edges, check_sharing
from enfa.nn.models.ego_nets.base import EGO_READOUTS
from enfa.nn.models.pretrained import Saved
from enfa.nn.ops.function import uncompiled
from enfa.nn.ops.linear import through
from enfa.nn.rowwise.rows import Rows

__all__ = ["GNNAK"]


class Kernel(nn.Module):
    """One layer: Emb(i | Sub[j]) of every node i in the subgraph of j, and what node j reads of them."""

    def __init__(
        self, hidden: int, hops: int, marks: int, layers: int, conv: ConvLike, edge_dim: int, norm: str | None, dropout: float,
        pool: str,
    ) -> None:  # fmt: skip
        super().__init__()
        width = hidden + hops
        self.hop = nn.Linear(marks, hops, bias=False)  # an embedding of the distance to the centroid
        self.inner = nn.ModuleList(
            SubgraphLayer(make_conv(conv, width, width, edge_dim, norm), make_norm(norm, width), dropout, False, True)
            for _ in range(layers)
        )
        self.out, self.dropout, self.pool = nn.Linear(width, hidden), nn.Dropout(dropout), pool
        self.subgraph, self.context = (
            nn.Sequential(nn.Linear(hidden, hidden), make_norm(norm, hidden), nn.ReLU()) for _ in range(2)
        )
        self.gates = nn.ModuleList(nn.Sequential(nn.Linear(hops, hidden), nn.Sigmoid()) for _ in range(3))
        self.norm = make_norm(norm, hidden)

    def forward(self, bag: Bag, x: Rows, marks: Rows, edge: Rows | None) -> Rows:
        hop: Any = self.hop(marks)
        h: Any = torch.cat([x, hop], 1)  # type: ignore[list-item]
        for layer in self.inner:
            h = layer(bag, h, edge)
        h = self.out(h)
        of_root, of_subgraph, of_context = (gate(hop) for gate in self.gates)  # by the distance of i and j
        centroid = bag.diagonal(h * of_root)  # Emb(j | Sub[j])
        about = bag.pool(self.subgraph(self.dropout(h)) * of_subgraph, self.pool)  # over i of Emb(i | Sub[j])
        context = bag.across(self.context(self.dropout(h)) * of_context, self.pool)  # over i of Emb(j | Sub[i])
        return self.norm(centroid + bag.pool(about, "sum", to="nodes") + context).relu()


class GNNAK(Saved, Captures):
    """GNN-AK+ of Zhao et al., "From Stars to Subgraphs: Uplifting Any GNN with Local Structure Awareness", ICLR 2022, for
    ``EgoNets(hops, mark="distances")`` or other policies in which every node is the root of one subgraph.

    Every layer runs a base GNN on all subgraphs and adds up three encodings of each node, gated by distances: its own row in
    its subgraph (centroid), the pool of its subgraph (subgraph), and the pool of its rows in all subgraphs (context). The
    sum is what the node is in the next layer.

    Args:
        num_layers: of these (outer) layers.
        inner_layers: rounds of messages within each of them.
        hop_channels: width of the embedding of a distance.
        pool: ``"mean"`` or ``"sum"``, of subgraphs and of contexts.
        readout: ``"sum"``, ``"mean"`` or ``"max"`` over the nodes of the graph, or ``"node"``: every node by itself.
        residual: add each layer's input.

    All other arguments are those of :class:`~enfa.DSGNN`; ``mark_channels`` is the policy's, at least 1. As in the authors'
    code, the encodings are added, that of the centroid has a gate, too, and the base GNN has residual connections.

    Shapes: a plan of G graphs -> [G, out_channels]. With ``readout="node"``: [nodes, out_channels].
    """

    def __init__(
        self, in_channels: Any, hidden_channels: int, out_channels: int, num_layers: int, conv: ConvLike = "gin", *,
        mark_channels: int, inner_layers: int = 2, hop_channels: int = 16, edge_channels: Any = None,
        norm: str | None = "batch", dropout: float = 0.0, pool: str = "mean", readout: str = "mean", residual: bool = True,
        share: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        check_choices(pool=(pool, ("mean", "sum")), readout=(readout, EGO_READOUTS))
        check_sharing(share, dropout)
        num_layers, hidden = whole("num_layers", num_layers, 1), whole("hidden_channels", hidden_channels, 1)
        inner, self.marks = whole("inner_layers", inner_layers, 1), whole("mark_channels", mark_channels, 1)
        hops, out_channels = whole("hop_channels", hop_channels, 1), whole("out_channels", out_channels, 1)
        self.readout, self.residual, self.share = readout, residual, share
        self.encoder = NodeEncoder(in_channels, hidden, self.marks)
        self.embed = nn.Linear(self.encoder.out_channels - self.marks, hidden)
        edges = EdgeEncoder(0 if edge_channels is None else edge_channels, hidden, 0)
        self.edge_encoder = edges if edges.out_channels else None
        reading = self.edge_encoder is not None, conv, edge_channels
        check_edges(CONVS.get(str(conv)), *reading)
        rest = hops, self.marks, inner, conv, edges.out_channels, norm, dropout, pool
        self.layers = nn.ModuleList(Kernel(hidden, *rest) for _ in range(num_layers))
        check_edges(self.layers[0].inner[0].conv, *reading)  # type: ignore[union-attr, index]
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, out_channels))

    @uncompiled
    def forward(self, bag: Bag) -> Tensor:
        check_plan(bag)
        edge = None if self.edge_encoder is None else self.edge_encoder(bag)
        start: Any = self.encoder(bag)
        h = self.embed(start[:, : -self.marks])  # of pairs, but the same in all subgraphs
        marks, x = start[:, -self.marks :], bag.diagonal(h)
        for number, layer in enumerate(self.layers):
            found = self.dropout(layer(bag, bag.spread(x) if number else h, marks, edge))
            x = found + x if self.residual else found
        return through(self.head, bag.each(x) if self.readout == "node" else bag.pool(x, self.readout))
