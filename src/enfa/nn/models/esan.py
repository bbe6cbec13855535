"""DS-GNN as in its authors' code: what :class:`~enfa.DSGNN` leaves to the user, wired as there."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from enfa.graphs.names import unknown
from enfa.graphs.numbers import whole
from enfa.nn.bag.bag import Bag
from enfa.nn.convs import make_conv
from enfa.nn.convs.base import make_norm, mlp
from enfa.nn.encode import NodeEncoder, OneHotEdges
from enfa.nn.models.base import ConvLike, SubgraphGNN, SubgraphLayer, embedding_gine
from enfa.nn.rowwise.rows import Rows

__all__ = ["ESAN"]

CONVS = ("gin", "gine", "graphconv")
READOUTS = ("sum", "mean", "max")


class ESANLayer(SubgraphLayer):
    """Dropout(relu(norm(conv(h)))); the last one on molecules has no ReLU."""

    activated = True

    def update(self, bag: Bag, h: Rows, edge: Rows | None) -> Rows:
        out = self.norm(bag.propagate(self.conv, h, edge))
        return out.relu() if self.activated else out


class ESAN(SubgraphGNN):
    """DS-GNN of Bevilacqua et al., "Equivariant Subgraph Aggregation Networks", ICLR 2022, wired as in its authors' code.

    It differs from :class:`~enfa.DSGNN` in that

    - the input is part of the jumping knowledge ``"concat"``;
    - GINE has an MLP twice as wide inside, a bond embedding of its own, a learnt eps, and no ReLU after the last layer;
    - pools of subgraphs go through DeepSets layers, h' = elu(W1 h + W2 mean over the bag), and the mean of their outputs
      through an MLP twice as wide inside. ``invariant``, as there for ZINC: h' = elu(W1 h), then g' = elu(W2 g) of the bag's
      mean.

    A mean over the bag that goes back to its subgraphs tells graphs apart: rows are then shared within each graph only, as
    they are with dropout. It gets there by way of their nodes, so a subgraph without any (a node deleted from a graph of one)
    has W1 h alone; in the authors' code there is none, because a deleted node stays (``NodeDeletion(isolate=True)``).

    The authors' settings: ``conv="gine"``, 5 layers of 300, ``readout="mean"``, ``dropout=0.5`` for OGB's molecules;
    ``conv="gin"``, 4 layers of 16 or 32, ``readout="sum"``, ``jk="concat"`` for TU's datasets; ``channels`` (32, 32) or
    (64, 64).

    Args:
        conv: ``"gin"``, ``"gine"`` or ``"graphconv"``.
        channels: widths of the DeepSets layers.
        readout: ``"sum"``, ``"mean"`` or ``"max"``.
        jk: ``"last"`` or ``"concat"``.

    All other arguments are those of :class:`~enfa.DSGNN`.
    """

    encoders = (NodeEncoder, OneHotEdges)
    jk_input = True

    def __init__(
        self, in_channels: Any, hidden_channels: int, out_channels: int, num_layers: int, conv: ConvLike = "gin", *,
        channels: Sequence[int] = (32, 32), invariant: bool = False, readout: str = "sum", jk: str = "last", **options: Any,
    ) -> None:  # fmt: skip
        for what, name, known in (("conv", conv, CONVS), ("readout", readout, READOUTS), ("jk", jk, ("last", "concat"))):
            if name not in known:
                raise unknown(what, str(name), known)
        if not isinstance(channels, (list, tuple)) or not channels:
            raise ValueError(f"Expected a list of at least one channel width, got channels={channels!r}")
        self.channels, self.invariant = [whole("channels", width, 1) for width in channels], bool(invariant)
        if invariant and len(set(self.channels)) > 1:
            raise ValueError(f"Expected equal channels, because it is invariant, got channels={list(channels)}")
        super().__init__(
            in_channels, hidden_channels, out_channels, num_layers, conv, readout=readout, jk=jk, **options
        )  # fmt: skip
        self.layers[-1].activated = conv != "gine"  # type: ignore[assignment]

    def layer(self, width: int, hidden: int, conv: ConvLike, edge_dim: int, norm: str | None, *options: Any) -> SubgraphLayer:
        if conv == "gine" and self.edge_encoder is not None:
            made = embedding_gine(self.edge_encoder, width, hidden, edge_dim, norm, self._draw)
        else:
            made = make_conv(conv, width, hidden, edge_dim, norm)
        if conv != "graphconv":
            made.update = mlp(width, hidden, norm, 2 * hidden if conv == "gine" else hidden)
        return ESANLayer(made, make_norm(norm, hidden), *options)

    def _draw(self, weight: Tensor) -> None:
        """As OGB draws bond embeddings, one for every column of categories; marks of edges are drawn as one more."""
        assert self.edge_encoder is not None
        sizes = list(self.edge_encoder.channels)  # type: ignore[arg-type]  # floats are not drawn here
        for part in weight.split([*sizes, *[weight.shape[1] - sum(sizes)] * (weight.shape[1] > sum(sizes))], 1):
            nn.init.xavier_uniform_(part)

    def make_subgraph_mlp(self, pooled: int, hidden: int, norm: str | None) -> nn.Module:
        widths = list(pairwise([pooled, *self.channels]))
        own = nn.ModuleList(nn.Linear(before, after) for before, after in widths)
        of_bag = nn.ModuleList(nn.Linear(after if self.invariant else before, after) for before, after in widths)
        return nn.ModuleDict({"own": own, "bag": of_bag})

    def make_head(self, hidden: int, out_channels: int, dropout: float) -> nn.Sequential:
        width = self.channels[-1]
        return nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, out_channels))

    def pooled(self, bag: Bag, h: Rows) -> Tensor:
        h = bag.pool(h, self.readout)
        own, of_bag = self.subgraph_mlp["own"], self.subgraph_mlp["bag"]  # type: ignore[index]
        if self.invariant:
            for layer in own:
                h = F.elu(layer(h))  # type: ignore[assignment, arg-type]
            found = bag.pool(h, self.bag)
            for layer in of_bag:
                found = F.elu(layer(found))
            return found
        for mine, ours in zip(own, of_bag):
            # from graphs to their subgraphs by way of all nodes, whose mean is what each of them got
            seen = bag.pool(bag.spread(ours(bag.pool(h, self.bag))), "mean")
            h = F.elu(mine(h) + seen)  # type: ignore[assignment]
        return bag.pool(h, self.bag)
