"""Convs that users bring: any PyG conv that takes ``(x_src, x_dst)``."""

from __future__ import annotations

import inspect

from torch import Tensor, nn

from enfa.nn.convs.base import Conv
from enfa.nn.dropout import KeyedDropout
from enfa.nn.norm import CountedBatchNorm
from enfa.nn.segment import gather
from enfa.plan.derive import edge_index
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
# They draw per copy of a row, and have no keyed version as nn.Dropout has.
_RANDOM = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout, nn.RReLU)
# They fail on None where they are given no edge attributes.
_NEED_EDGES = {"GINEConv", "NNConv", "GMMConv", "SplineConv"}


def check_exact(module: nn.Module) -> None:
    """Refuse what could not be computed exactly on shared rows."""
    for part in module.modules():
        name = type(part).__name__
        if name in _PER_GRAPH or (name == "LayerNorm" and getattr(part, "mode", None) == "graph"):
            raise ValueError(f"{name} takes statistics per graph, but graphs share rows; use a batch or layer norm")
        if name in _OWN_DEGREES:
            raise ValueError(f"{name} reads degrees of the graph by itself; use conv='gcn', which reads the subgraph's")
        if name in _ORDERED:
            raise ValueError(f"{name} depends on the order of the messages, which a multiset does not have")
        if isinstance(part, _RANDOM):
            raise ValueError(f"{name} draws per copy of a row; use torch.nn.Dropout, whose masks plans can share")
        rates = getattr(part, "dropout", 0.0)  # a list of them in torch_geometric.nn.MLP
        rates = rates if isinstance(rates, (list, tuple)) else [rates]
        rate = max((r for r in rates if isinstance(r, (int, float))), default=0.0)
        if rate > 0.0:
            raise ValueError(
                f"{name} has dropout={rate} inside, which draws per copy of a row or message; use the model's "
                f"dropout, or a torch.nn.Dropout in an nn.Sequential"
            )
        if getattr(part, "add_self_loops", False):
            raise ValueError(
                f"{name} has add_self_loops=True, which pairs sources and targets by number, and rows of two tables "
                f"are no such pairs; pass add_self_loops=False and put loops into the graphs where they are wanted"
            )


class AdaptedConv(Conv):
    """Calls a PyG conv with the table before as sources and the same nodes' rows as targets.

    BatchNorm and Dropout inside it are replaced by their counted and keyed versions.
    """

    def __init__(self, conv: nn.Module) -> None:
        super().__init__(0, 0, 0, None)
        names = inspect.signature(conv.forward).parameters if isinstance(conv, nn.Module) else {}
        if "edge_index" not in names:
            raise TypeError(f"Expected conv(in, out) to make a PyG conv, called as (x, edge_index), got {conv!r}")
        check_exact(conv)
        self.conv = KeyedDropout.convert(CountedBatchNorm.convert(conv))
        self.reads_edges = "edge_attr" in names and _wants_edges(conv)
        self.needs_edges = type(conv).__name__ in _NEED_EDGES
        self._takes_size = "size" in names
        self.links = frozenset({"own", "edge_index"} | ({"edges"} if self.reads_edges else set()))

    def hidden(
        self, rows: Tensor, links: Links, edge: Tensor | None, degree: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        own = gather(rows, links.self_row, links.cache, "self")
        more: dict[str, object] = {"size": (len(rows), links.num_rows)} if self._takes_size else {}
        if self.reads_edges and edge is not None:
            more["edge_attr"] = gather(edge, links.in_edge, links.cache, "edge")
        return self.conv((rows, own), edge_index(links), **more)


def _wants_edges(conv: nn.Module) -> bool:
    """Whether a conv that could read edge attributes was made to."""
    if hasattr(conv, "edge_dim"):
        return conv.edge_dim is not None
    return True
