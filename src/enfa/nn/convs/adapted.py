"""Convs that users bring: any PyG conv that takes ``(x_src, x_dst)``."""

from __future__ import annotations

import inspect

import torch
from torch import Tensor, nn

from enfa.nn.convs.base import Conv
from enfa.nn.dropout import KeyedDropout
from enfa.nn.norm import CountedBatchNorm
from enfa.nn.segment import gather, target_rows
from enfa.plan.table import Links

__all__ = ["AdaptedConv", "check_exact"]

# Statistics over a graph: with shared rows there is no graph to take them over.
_PER_GRAPH = {
    "InstanceNorm", "InstanceNorm1d", "GraphNorm", "GraphSizeNorm", "PairNorm", "MeanSubtractionNorm", "DiffGroupNorm",
}  # fmt: skip
# They read degrees off the edge list by themselves, for which they need a square one.
_OWN_DEGREES = {
    "GCNConv", "ChebConv", "TAGConv", "SGConv", "SSGConv", "ARMAConv", "LGConv", "APPNP", "ClusterGCNConv", "GCN2Conv",
    "FAConv",
}  # fmt: skip
# Their result depends on the order of the messages.
_ORDERED = {"LSTMAggregation", "GRUAggregation"}


def check_exact(module: nn.Module) -> None:
    """Refuse what could not be computed exactly on shared rows."""
    for part in module.modules():
        name = type(part).__name__
        if name in _PER_GRAPH or (name == "LayerNorm" and getattr(part, "mode", None) == "graph"):
            raise ValueError(f"{name} takes statistics per graph, which no plan shares rows for; use batch or layer norm")
        if name in _OWN_DEGREES:
            raise ValueError(f"{name} reads degrees of the graph by itself; use conv='gcn', which reads the subgraph's")
        if name in _ORDERED:
            raise ValueError(f"{name} depends on the order of the messages, which a multiset does not have")
        if getattr(part, "add_self_loops", False) is True:
            raise ValueError(
                f"{name} adds loops between rows of equal number, but source and target rows are different tables; "
                f"make it with add_self_loops=False (and add loops to the graphs if they are wanted)"
            )
        rate = getattr(part, "dropout", 0.0)
        if isinstance(rate, (int, float)) and rate > 0.0:
            raise ValueError(
                f"{name} has dropout={rate} on messages, which draws per copy; use the model's dropout instead"
            )


class AdaptedConv(Conv):
    """Calls a PyG conv with the table before as sources and the same nodes' rows as targets.

    BatchNorm and Dropout inside it are replaced by their counted and keyed versions.
    """

    def __init__(self, conv: nn.Module) -> None:
        super().__init__(0, 0, 0, None)
        check_exact(conv)
        self.conv = KeyedDropout.convert(CountedBatchNorm.convert(conv))
        names = inspect.signature(conv.forward).parameters
        self.reads_edges = "edge_attr" in names and _wants_edges(conv)
        self._takes_size = "size" in names

    def forward(
        self, rows: Tensor, links: Links, edge: Tensor | None, degree: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        own = gather(rows, links.self_row, links.cache, "self")
        more: dict[str, object] = {"size": (len(rows), links.num_rows)} if self._takes_size else {}
        if self.reads_edges and edge is not None:
            more["edge_attr"] = gather(edge, links.in_edge, links.cache, "edge")
        if "edge_index" not in links.cache:
            links.cache["edge_index"] = torch.stack([links.in_row, target_rows(links)])
        return self.conv((rows, own), links.cache["edge_index"], **more)


def _wants_edges(conv: nn.Module) -> bool:
    """Whether a conv that could read edge attributes was made to."""
    if hasattr(conv, "edge_dim"):
        return conv.edge_dim is not None
    return True
