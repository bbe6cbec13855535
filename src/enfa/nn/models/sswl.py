"""GNN-SSWL+: messages within subgraphs and between them, and of every node its row in its own subgraph."""

from typing import Any

import torch
from torch import Tensor, nn

from enfa.graphs.names import unknown
from enfa.nn.bag.bag import Bag
from enfa.nn.bag.branches import Branches, added, computed, fan, plus_spread
from enfa.nn.convs import make_conv
from enfa.nn.convs.base import make_norm, mlp
from enfa.nn.encode import OneHotEdges, SumEncoder
from enfa.nn.models.base import ConvLike, SubgraphGNN, SubgraphLayer, embedding_gine
from enfa.nn.ops.norm import CountedBatchNorm
from enfa.nn.rowwise.rows import Rows
from enfa.plan.step import step_of

__all__ = ["SSWLGNN"]


class SSWLLayer(SubgraphLayer):
    """act(norm(sum of three MLPs)), each of a row (j, v) and of one thing that it sees."""

    def __init__(self, between: nn.Module, point: nn.Module, *layer: Any) -> None:
        super().__init__(*layer)
        self.between, self.point, self.eps = between, point, nn.Parameter(torch.zeros(1))

    def update(self, bag: Bag, h: Rows, edge: Rows | None) -> Rows:
        one, two, three, four = fan(h, 4)
        with Branches(h, self.conv, self.between, self.point) as beside:
            with beside(edge):
                inside: Any = computed(bag.propagate(self.conv, one, edge))  # (j, u) for u in N(v)
            with beside(edge):
                between = computed(bag.propagate(self.between, two, edge, along="subgraphs"))  # (k, v) for k in N(j)
            # h lies in the table of messages, and not in one beside it: rows of h and (v, v) would be one more table
            table = bag.meeting(inside, between, "+")
            point = computed(self.point(plus_spread(three, bag.diagonal(four), 1 + self.eps, table)))  # (v, v)
        out: Any = added(inside, between, point)
        return self.norm(out).relu()


def num_nodes(bag: Bag, h: Rows) -> Rows:
    """int64 [subgraphs, 1]: how many rows of ``h`` each subgraph pools.

    For norms alone, and so no verb: ``enfa.power`` does not see it, because no model computes anything of it.
    """
    number = bag.step(step_of("pool", "subgraphs", (h.number,)))
    one = Rows(torch.ones(bag.num_rows(h.number), 1, device=bag.device), bag, h.number)
    return Rows(Bag._pooled(bag, one, number, "sum", None).long(), bag, number)


class CountedMLP(nn.Sequential):
    """In whose norms rows count as often as they are told to."""

    def counts(self) -> bool:
        """Whether all of them can: they may have been replaced."""
        return all(isinstance(m, CountedBatchNorm) for m in self.modules() if isinstance(m, nn.modules.batchnorm._NormBase))

    def forward(self, x: Any, counts: Any = None) -> Any:
        for module in self:
            x = module(x, counts) if isinstance(module, CountedBatchNorm) and counts is not None else module(x)
        return x


class SSWLGNN(SubgraphGNN):
    """GNN-SSWL+ of Zhang et al., "A Complete Expressiveness Hierarchy for Subgraph GNNs via Subgraph Weisfeiler-Lehman
    Tests", ICML 2023, for policies in which every node is the root of one subgraph.

    A row (j, v) starts as an embedding of v's features plus one of its mark. A layer is::

        h' = relu(norm( MLP1((1 + eps1) h + sum of relu(h(j, u) + e_uv) over edges u -> v)
                      + MLP2((1 + eps2) h + sum of relu(h(k, v) + e_kj) over edges k -> j between roots)
                      + MLP3((1 + eps3) h + h(v, v)) ))

    with a bond embedding for every layer and each of the two sums, and norms inside the MLPs, too. Then each subgraph is
    pooled, goes through relu(norm(MLP(.))), and the bag is pooled for the head. In this last norm a subgraph counts as
    often as it has nodes, as in the authors' code.

    That code's setting for ZINC: ``SSWLGNN([28], 96, 1, 6, "gine", edge_channels=[4], mark_channels=6)`` on
    ``NodeMarking(distances=4)``, in which distances of 5 and more are one. (Its graphs are connected. Here nodes that the
    root does not reach are as far as those, too.)

    Args:
        conv: ``"gine"``, as above, ``"gin"`` where edges have no attributes, or a callable ``(in, out) -> PyG conv`` in
            place of both sums with their MLPs.

    All other arguments are those of :class:`~enfa.DSGNN`.
    """

    encoders = (SumEncoder, OneHotEdges)
    head_width = 2

    def __init__(
        self, in_channels: Any, hidden_channels: int, out_channels: int, num_layers: int, conv: ConvLike = "gin",
        **options: Any,
    ) -> None:  # fmt: skip
        if isinstance(conv, str) and conv not in ("gin", "gine"):
            raise unknown("conv", conv, ("gin", "gine"))
        super().__init__(in_channels, hidden_channels, out_channels, num_layers, conv, **options)

    def layer(self, width: int, hidden: int, conv: ConvLike, edge_dim: int, norm: str | None, *options: Any) -> SubgraphLayer:
        convs = [self._summing(conv, width, hidden, edge_dim, norm) for _ in range(2)]
        return SSWLLayer(convs[1], mlp(width, hidden, norm), convs[0], make_norm(norm, hidden), *options)

    def _summing(self, conv: ConvLike, width: int, hidden: int, edge_dim: int, norm: str | None) -> nn.Module:
        if conv == "gin":
            return make_conv(conv, width, hidden, edge_dim, norm, train_eps=True, relu=True)
        if conv != "gine" or self.edge_encoder is None:
            return make_conv(conv, width, hidden, edge_dim, norm)
        # drawn as OGB draws bond embeddings
        return embedding_gine(self.edge_encoder, width, hidden, edge_dim, norm, nn.init.xavier_uniform_)

    def make_subgraph_mlp(self, pooled: int, hidden: int, norm: str | None) -> nn.Module:
        return CountedMLP(*mlp(pooled, hidden, norm), make_norm(norm, hidden), nn.ReLU())

    def pooled(self, bag: Bag, h: Rows) -> Tensor:
        found: Any = bag.pool(h, self.readout)
        if type(self.subgraph_mlp) is not CountedMLP or not self.subgraph_mlp.counts():  # of a user's own
            return bag.pool(bag.pool(self.subgraph_mlp(bag.spread(found)), "mean"), self.bag)
        nodes: Any = num_nodes(bag, h)
        found = self.subgraph_mlp(found, nodes)
        return bag.pool(torch.where(nodes > 0, found, 0.0), self.bag)  # type: ignore[arg-type]  # of no nodes, nothing
