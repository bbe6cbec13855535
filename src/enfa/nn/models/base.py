"""What the models have in common."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from enfa.graphs.names import unknown
from enfa.graphs.numbers import whole
from enfa.nn.bag.bag import Bag, check_plan
from enfa.nn.convs import CONVS, Conv, make_conv
from enfa.nn.convs.base import make_norm
from enfa.nn.cuda.captures import Captures
from enfa.nn.encode import EdgeEncoder, NodeEncoder
from enfa.nn.models.pretrained import Saved
from enfa.nn.ops.function import uncompiled
from enfa.nn.ops.linear import through
from enfa.nn.rowwise.rows import Rows

__all__ = ["SubgraphGNN", "SubgraphLayer", "check_choices", "check_edges", "check_sharing", "embedding_gine"]

READOUTS = ("sum", "mean", "max", "root", "node")
BAGS = ("mean", "sum")
JKS = ("last", "concat", "sum")
ConvLike = str | Callable[[int, int], nn.Module]


def check_choices(**given: tuple[str, tuple[str, ...]]) -> None:
    for what, (name, known) in given.items():
        if name not in known:
            raise unknown(what, name, known)


def check_sharing(share: str | None, dropout: float) -> None:
    """How far rows are shared, and how many are dropped, which then are dropped together."""
    if share not in (None, "dataset", "graph"):
        raise ValueError(f"Expected share to be 'dataset', 'graph' or None, got {share!r}")
    if not 0.0 <= dropout < 1.0:
        raise ValueError(f"Expected a dropout probability from 0 to below 1, got {dropout}")


def check_edges(first: Any, encoded: bool, conv: ConvLike, edge_channels: Any, edge_mark_channels: int = 0) -> None:
    """Edge attributes that a conv does not read would be ignored. ``first``: a conv, or its class; ``encoded``: are there?"""
    if not issubclass(first if isinstance(first, type) else type(first), Conv):  # of PyG: asked when messages are passed
        return
    if not encoded and first.reads_edges:
        raise ValueError(
            f"Expected edge_channels for conv={conv!r}, which reads edge attributes, got {edge_channels}; "
            f"for graphs that have none, use conv='gin'"
        )
    if encoded and not first.reads_edges:
        given = {"edge_channels": (edge_channels, None), "edge_mark_channels": (edge_mark_channels, 0)}
        what, (value, none) = next((k, v) for k, v in given.items() if v[0])
        raise ValueError(
            f"Expected a conv that reads edge attributes for {what}={value}, got conv={conv!r}, which reads none: "
            f"use conv='gine', or {what}={none}"
        )


class SubgraphLayer(nn.Module):
    """act(norm(conv(h))), and what a subclass makes of it; then dropout, and a residual connection where widths agree."""

    def __init__(self, conv: nn.Module, norm: nn.Module, dropout: float, independent: bool, residual: bool) -> None:
        super().__init__()
        self.conv, self.norm, self.dropout = conv, norm, nn.Dropout(dropout)
        self.independent, self.residual = independent, residual

    def update(self, bag: Bag, h: Rows, edge: Rows | None) -> Rows:
        return self.norm(bag.propagate(self.conv, h, edge)).relu()

    def forward(self, bag: Bag, h: Rows, edge: Rows | None) -> Rows:
        out = self.update(bag, h, edge)
        out = self._dropped_alone(out) if self.independent else self.dropout(out)
        return out + h if self.residual and out.shape[1] == h.shape[1] else out

    def _dropped_alone(self, h: Rows) -> Rows:
        """A mask for every (subgraph, node) pair."""
        if self.training and self.dropout.p > 0.0 and h.bag.kind != "full":
            raise ValueError("Expected the full plan for independent dropout masks: other plans share rows")
        return h.of(F.dropout(h.value, self.dropout.p, self.training))


def embedding_gine(
    edges: EdgeEncoder, width: int, hidden: int, edge_dim: int, norm: str | None, draw: Callable[[Tensor], Any]
) -> nn.Module:
    """GINE with eps learnt, and with an embedding of its own of edges that are one-hot, which ``draw`` initialises."""
    floats = isinstance(edges.channels, int)
    conv: Any = make_conv("gine", width, hidden, edge_dim, norm, train_eps=True, edge_bias=floats)
    if not floats:
        draw(conv.edge.weight)
    return conv


class SubgraphGNN(Saved, Captures):
    """Message passing on the bag, a pool over nodes, an MLP per subgraph, a pool over the bag, an MLP.

    Abstract: use :class:`~enfa.DSGNN`, which says what the arguments mean, or another. A model may bring encoders of nodes and
    edges, layers, and what it does with the pool of each subgraph.
    """

    encoders: tuple[type[NodeEncoder], type[EdgeEncoder]] = (NodeEncoder, EdgeEncoder)
    head_width = 1  # of its hidden layer, in hidden_channels
    jk_input = False  # whether jumping knowledge begins with what the encoder gives

    def __init__(
        self,
        in_channels: int | Sequence[int],
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        conv: ConvLike = "gin",
        *,
        edge_channels: int | Sequence[int] | None = None,
        norm: str | None = "batch",
        dropout: float = 0.0,
        readout: str = "sum",
        bag: str = "mean",
        jk: str = "last",
        residual: bool = False,
        mark_channels: int = 1,
        edge_mark_channels: int = 0,
        share: str | None = None,
        independent_dropout: bool = False,
    ) -> None:
        super().__init__()
        check_choices(readout=(readout, READOUTS), bag=(bag, BAGS), jk=(jk, JKS))
        check_sharing(share, dropout)
        # wrong numbers are refused before anything is built
        num_layers, hidden = whole("num_layers", num_layers, 1), whole("hidden_channels", hidden_channels, 1)
        out_channels = whole("out_channels", out_channels, 1)
        self.readout, self.bag, self.jk, self.share = readout, bag, jk, share
        self.encoder = self.encoders[0](in_channels, hidden, mark_channels)
        edges = self.encoders[1](0 if edge_channels is None else edge_channels, hidden, edge_mark_channels)
        self.edge_encoder = edges if edges.out_channels else None
        rest = (conv, edges.out_channels, norm, dropout, independent_dropout, residual)
        reading = self.edge_encoder is not None, conv, edge_channels, edge_mark_channels
        check_edges(CONVS.get(str(conv)), *reading)  # before any are made, of which PyTorch warns if they read nothing
        widths = [self.encoder.out_channels, *[hidden] * (num_layers - 1)]
        self.layers = nn.ModuleList(self.layer(width, hidden, *rest) for width in widths)
        check_edges(self.layers[0].conv, *reading)
        pooled = hidden * (num_layers if jk == "concat" else 1)
        pooled += self.encoder.out_channels if self.jk_input and jk == "concat" else 0
        self.subgraph_mlp = self.make_subgraph_mlp(pooled, hidden, norm)
        self.head = self.make_head(hidden, out_channels, dropout)

    def make_subgraph_mlp(self, pooled: int, hidden: int, norm: str | None) -> nn.Module:
        return nn.Sequential(nn.Linear(pooled, hidden), nn.ReLU())

    def make_head(self, hidden: int, out_channels: int, dropout: float) -> nn.Sequential:
        wide = hidden * self.head_width
        return nn.Sequential(nn.Linear(hidden, wide), nn.ReLU(), nn.Dropout(dropout), nn.Linear(wide, out_channels))

    def layer(self, width: int, hidden: int, conv: ConvLike, edge_dim: int, norm: str | None, *options: Any) -> SubgraphLayer:
        return SubgraphLayer(make_conv(conv, width, hidden, edge_dim, norm), make_norm(norm, hidden), *options)

    @uncompiled
    def forward(self, bag: Bag) -> Tensor:
        """[number of graphs, out_channels]; [rooted subgraphs or nodes, out_channels] for node-level readouts."""
        check_plan(bag)
        edge = None if self.edge_encoder is None else self.edge_encoder(bag)
        h = self.encoder(bag)
        tables = [h] if self.jk_input else []
        for layer in self.layers:
            h = layer(bag, h, edge)
            tables.append(h)
        if self.jk == "sum":
            h = tables[0]
            for table in tables[1:]:
                h = table + h
        elif self.jk == "concat":
            h = torch.cat(tables, 1)
        return through(self.head, self._read_out(bag, h))

    def _read_out(self, bag: Bag, h: Rows) -> Tensor:
        if self.readout == "root":
            found = bag.each(self.subgraph_mlp(bag.root(h)))
            return found if bag.rooted is None else found.index_select(0, bag.rooted)
        if self.readout == "node":
            return bag.each(self.subgraph_mlp(bag.across(h, "mean")))
        return self.pooled(bag, h)

    def pooled(self, bag: Bag, h: Rows) -> Tensor:
        return bag.pool(self.subgraph_mlp(bag.pool(h, self.readout)), self.bag)
