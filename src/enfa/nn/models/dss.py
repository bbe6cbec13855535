"""DSS-GNN: in every layer, a node also sees itself in the other subgraphs of the bag."""

from __future__ import annotations

from collections.abc import Sequence

from enfa.nn.context import CONTEXTS
from enfa.nn.models.base import ConvLike, SubgraphGNN
from enfa.plan.make import unknown

__all__ = ["DSSGNN"]


class DSSGNN(SubgraphGNN):
    """DSS-GNN of Bevilacqua et al., ICLR 2022, and the cross-subgraph message passing of the ENFA paper (Eq. 6).

    Args:
        context: ``"dss"``: relu(bn(conv(x)) + bn'(conv'(mean_k x_k))[v]), ESAN's layer; ``"identity"``: H_j + the sum
            of all H_k; ``"mpnn"``: H_j + Enc(sum_k H_k), with Enc a conv of the same type on the original graph.

    All other arguments are those of :class:`~enfa.DSGNN`.
    """

    def __init__(
        self,
        in_channels: int | Sequence[int],
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        conv: ConvLike = "gin",
        context: str = "dss",
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
        if context not in CONTEXTS:
            raise unknown("context", context, CONTEXTS)
        super().__init__(
            in_channels, hidden_channels, out_channels, num_layers, conv, context, edge_channels=edge_channels,
            norm=norm, dropout=dropout, readout=readout, bag=bag, jk=jk, residual=residual,
            mark_channels=mark_channels, edge_mark_channels=edge_mark_channels, share=share,
            independent_dropout=independent_dropout,
        )  # fmt: skip
