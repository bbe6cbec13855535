"""Convs that users bring: any PyG conv that takes ``(x_src, x_dst)``."""

from __future__ import annotations

import inspect

import torch
import torch_geometric.typing as pyg
from torch import Tensor, nn
from torch_geometric.nn import aggr

from enfa.nn.convs.base import Conv
from enfa.nn.convs.exact import check_exact
from enfa.nn.dropout import KeyedDropout
from enfa.nn.norm import CountedBatchNorm
from enfa.nn.rows import Rows, current_rows, made, rows_in_flight
from enfa.nn.segment import gather
from enfa.plan.derive import edge_index
from enfa.plan.table import Links

__all__ = ["AdaptedConv"]

# They fail on None where they are given no edge attributes.
_NEED_EDGES = {"GINEConv", "NNConv", "GMMConv", "SplineConv"}


class AdaptedConv(Conv):
    """Calls a PyG conv with the table before as sources and the same nodes' rows as targets.

    BatchNorm and Dropout inside it are replaced by their counted and keyed versions. Parts of it may be checkpointed
    (``torch.utils.checkpoint``). Its own ``aggregate`` is taken on trust: it must be a function of the multiset of messages.
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
        self._tells_rows = any(isinstance(m, (CountedBatchNorm, KeyedDropout)) for m in self.conv.modules())
        self._largest = any(isinstance(m, (aggr.MaxAggregation, aggr.MinAggregation)) for m in conv.modules())
        self.links = frozenset({"own", "edge_index"} | ({"edges"} if self.reads_edges else set()))

    def hidden(
        self, rows: Tensor, links: Links, edge: Tensor | None, degree: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        if self._largest and rows.is_cuda and pyg.WITH_TORCH_SCATTER:
            raise ValueError(
                "Expected PyG's own max and min, which give equal parts of a gradient to all messages that attain them, got "
                "those of torch_scatter, which choose one; set torch_geometric.typing.WITH_TORCH_SCATTER = False"
            )
        own = gather(rows, links.self_row, links.cache, "self")
        more: dict[str, Tensor] = {}
        if self.reads_edges and edge is not None:
            more["edge_attr"] = gather(edge, links.in_edge, links.cache, "edge")
        known, extra = current_rows(), self._extra_rows(len(rows), links)
        if known is None or not extra:
            return self._called(rows, own, links, more)

        def longer(values: Tensor) -> Tensor:
            return torch.cat([values, values.new_zeros(extra)])

        wider = Rows(longer(known.copies), known.total, lambda: longer(known.identity()), known.full)
        with rows_in_flight(wider) as call:
            here = torch.cat([own, own[:1].expand(extra, -1)])
            return made(call, self._called(rows, here, links, more), rows, own, *more.values())[: len(own)]

    def _called(self, rows: Tensor, own: Tensor, links: Links, more: dict[str, Tensor]) -> Tensor:
        size: dict[str, object] = {"size": (len(rows), len(own))} if self._takes_size else {}
        return self.conv((rows, own), edge_index(links), **size, **more)

    def _extra_rows(self, before: int, links: Links) -> int:
        """How many rows, which count for nothing, to add to the conv rows, so that sources and messages are not as many.

        Norms and dropout in the conv are made for conv rows, which they know by their number. With as many sources, or
        messages, they would take those for conv rows.
        """
        here, others = links.num_rows, (before, len(links.in_row))
        if not self._tells_rows or not here or here not in others:
            return 0
        return 1 if here + 1 not in others else 2


def _wants_edges(conv: nn.Module) -> bool:
    """Whether a conv that could read edge attributes was made to."""
    if hasattr(conv, "edge_dim"):
        return conv.edge_dim is not None
    return True
