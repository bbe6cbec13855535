"""SUN: what a row sees of its node, its subgraph and its root is added up, and roots have weights of their own."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from enfa.graphs.names import unknown
from enfa.nn.bag.bag import Bag
from enfa.nn.bag.branches import Branches, computed, fan, plus_spread
from enfa.nn.convs import make_conv
from enfa.nn.convs.base import make_norm, mlp
from enfa.nn.encode import Categorical, NodeEncoder, OneHotEdges
from enfa.nn.models.base import ConvLike, SubgraphGNN, SubgraphLayer, embedding_gine
from enfa.nn.ops.norm import CountedBatchNorm
from enfa.nn.rowwise.rows import Rows

__all__ = ["SUN"]

POOLS = ("sum", "mean")


class RootEncoder(NodeEncoder):
    """Features, and the marks beside them: of one channel as (1, 0) for roots and (0, 1) for others."""

    def __init__(self, channels: int | Sequence[int], hidden_channels: int, mark_channels: int) -> None:
        super().__init__(channels, hidden_channels, mark_channels)
        if not self.mark_channels:
            raise ValueError("Expected mark_channels >= 1, because roots are told by their marks, got 0")
        if isinstance(self.embed, Categorical):
            nn.init.normal_(self.embed.weight)  # as an nn.Embedding is drawn
        self.out_channels += self.mark_channels == 1

    def forward(self, bag: Bag) -> Rows:
        if bag.tracing and not bool((bag.mark_rows[:, 0] > 0).any()):
            raise ValueError("Expected a policy that marks roots in the first channel of its marks, got one that marks nothing")
        return super().forward(bag)

    def encoded(self, rows: Any, marks: Any) -> Rows:
        return super().encoded(rows, torch.cat([marks, 1 - marks], 1) if self.mark_channels == 1 else marks)


class UnmarkedEncoder(RootEncoder):
    """Features alone: marks tell which nodes are roots, and nothing else."""

    def __init__(self, channels: int | Sequence[int], hidden_channels: int, mark_channels: int) -> None:
        super().__init__(channels, hidden_channels, mark_channels)
        self.out_channels -= max(self.mark_channels, 2)

    def encoded(self, rows: Any, marks: Any) -> Rows:
        return super().encoded(rows, marks)[:, : self.out_channels]


class SUNLayer(SubgraphLayer):
    """``conv`` and ``norm`` are those of rows that are no root's; ``make(name)``: another conv, norm or MLP."""

    def __init__(self, pool: str, make: Callable[[str], nn.Module], *layer: Any) -> None:
        super().__init__(*layer)
        self.pool = pool
        self.seen_conv, self.seen_norm = make("conv"), make("norm")
        self.root_conv, self.root_norm = make("conv"), make("norm")
        self.root_seen_conv, self.root_seen_norm = make("conv"), make("norm")
        self.vv, self.kk, self.kv, self.pooled, self.root_vv, self.root_pooled = (make("mlp") for _ in range(6))

    def update(self, bag: Bag, h: Rows, edge: Rows | None) -> Rows:
        """Of everything the left half of the channels is for rows (k, v) with v != k, the right half for roots, (k, k)."""
        marks: Any = bag.mark
        root = marks[:, :1] > 0
        first, second, third, *rest = fan(h, 7)
        with Branches(h, *self._modules.values()) as beside:  # a module under two names twice, as children() would not
            with beside(edge):
                own, seen = bag.diagonal(rest[0]), bag.across(rest[1], "mean")  # (v, v); the mean of (k, v) over k
                of_node: Any = computed(torch.cat([
                    self.vv(own) + self.seen_norm(bag.propagate(self.seen_conv, seen, edge)),
                    self.root_vv(own) + self.root_seen_norm(bag.propagate(self.root_seen_conv, seen, edge)),
                ], 1))  # fmt: skip
            with beside():
                pooled = bag.pool(rest[2], self.pool)  # of all (k, v) over v
                of_root = self.kk(bag.root(rest[3]))
                of_subgraph = computed(torch.cat([of_root + self.pooled(pooled), self.root_pooled(pooled)], 1))
            with beside(edge, root):
                at_root = computed(_among(self.root_norm, bag.propagate(self.root_conv, third, edge), root))
            at_pair: Any = _among(self.norm, bag.propagate(self.conv, first, edge), ~root) + self.kv(second)
            at_pair = computed(at_pair)
        at_pair = torch.cat([at_pair, at_root], 1)
        out: Any = plus_spread(plus_spread(at_pair, of_node), of_subgraph)
        others, roots = out.chunk(2, 1)
        chosen: Any = torch.where(root, roots, others)
        return chosen.relu()


def _among(norm: nn.Module, h: Rows, rows: Rows) -> Any:
    """A BatchNorm's statistics are those of some rows. Whatever the others are, they are not read."""
    return norm(h, rows) if isinstance(norm, CountedBatchNorm) else norm(h)


class SUN(SubgraphGNN):
    """SUN of Frasca et al., "Understanding and Extending Subgraph GNNs by Rethinking Their Symmetries", NeurIPS 2022, for
    policies in which every node is the root of one subgraph and marked in it, and nothing else is.

    Rows (k, v) start as v's features beside (1, 0) for roots, k = v, and (0, 1) for others. A layer is::

        h'(k, v) = relu( norm(conv(h))(k, v)        over the edges of subgraph k
                       + norm(conv(mean of h over the bag))(v)    over the edges of the graph
                       + MLP(h(v, v)) + MLP(h(k, k)) + MLP(h(k, v)) + MLP(sum of h(k, u) over u) )

    and of roots, where three of these rows are one, ::

        h'(v, v) = relu( norm(conv(h))(v, v) + norm(conv(mean of h))(v) + MLP(h(v, v)) + MLP(sum of h(v, u)) )

    with other convs, norms and MLPs. The first norm of each takes its statistics of the rows that it is for; those inside
    convs and MLPs of all rows. The mean over each subgraph, then over the bag, goes into the head.

    The authors' setting for ZINC: ``SUN([28], 64, 1, 6, "gine", edge_channels=[4])`` on ``EgoNets(3, mark=True,
    isolate=True)``, their EGO+; with ``mark_features=False`` their EGO. Their options that are off there are not here: the row
    (v, k) as one more term, dropout before the first layer, and a linear of that in a residual connection.

    Args:
        conv: as of :class:`~enfa.DSGNN`. ``"gine"`` has an embedding of edges of its own in every conv, and learns eps.
        pool: ``"sum"`` or ``"mean"`` over the nodes of a subgraph, in every layer.
        mark_features: False: marks tell which rows are roots', and are no features.

    All other arguments are those of :class:`~enfa.DSGNN`; ``readout`` is the mean, as in the authors' code.
    """

    encoders = (RootEncoder, OneHotEdges)
    head_width = 2

    def __init__(
        self, in_channels: Any, hidden_channels: int, out_channels: int, num_layers: int, conv: ConvLike = "gin",
        pool: str = "sum", *, mark_features: bool = True, readout: str = "mean", **options: Any,
    ) -> None:  # fmt: skip
        if pool not in POOLS:
            raise unknown("pool", pool, POOLS)
        self.pool = pool
        if not mark_features:
            self.encoders = (UnmarkedEncoder, OneHotEdges)
        super().__init__(in_channels, hidden_channels, out_channels, num_layers, conv, readout=readout, **options)

    def layer(self, width: int, hidden: int, conv: ConvLike, edge_dim: int, norm: str | None, *options: Any) -> SubgraphLayer:
        def make(what: str) -> nn.Module:
            if what == "conv" and conv == "gine" and self.edge_encoder is not None:
                return embedding_gine(self.edge_encoder, width, hidden, edge_dim, norm, nn.init.normal_)
            if what == "conv":
                return make_conv(conv, width, hidden, edge_dim, norm)
            return mlp(width, hidden, norm) if what == "mlp" else make_norm(norm, hidden)

        return SUNLayer(self.pool, make, make("conv"), make("norm"), *options)

    def make_subgraph_mlp(self, pooled: int, hidden: int, norm: str | None) -> nn.Module:
        return nn.Identity() if pooled == hidden else nn.Linear(pooled, hidden)
