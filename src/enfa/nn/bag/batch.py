"""What a lifted model gets in place of the vector that says which graph each node belongs to: its graphs are subgraphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch import nn
from torch_geometric.nn import aggr

from enfa.nn.bag.edges import StandIn
from enfa.nn.rowwise.rows import Rows

if TYPE_CHECKING:
    from enfa.nn.bag.bag import Bag

__all__ = ["GraphCount", "NodeBatch", "Pool", "check_count"]

_HOW = {aggr.SumAggregation: "sum", aggr.MeanAggregation: "mean", aggr.MaxAggregation: "max"}


class NodeBatch(StandIn):
    """``over``: how subgraphs are pooled as soon as their nodes are, if at once."""

    what = "the batch vector"
    bag: Bag
    over: str | None

    @staticmethod
    def of(bag: Bag, over: str | None = None) -> NodeBatch:
        new = torch.empty(0, dtype=torch.int64, device=bag.device).as_subclass(NodeBatch)
        new.bag, new.over = bag, over
        return new

    def pooled(self, x: Any, how: str, score: Rows | None = None) -> Any:
        if not isinstance(x, Rows) or x.kind != "pairs":
            raise TypeError(f"Expected Rows of nodes in subgraphs to pool, got {x!r}")
        found = self.bag.pool(x, how, score)
        return found if self.over is None else self.bag.pool(found, self.over)

    def picked(self, rows: Rows) -> Rows:
        """``h[batch]``: every node gets the row of its subgraph."""
        return self.bag.spread(rows)


class GraphCount:
    """What a lifted model gets as ``data.num_graphs``: for pools to be given, and nothing else. Its graphs are subgraphs, so
    whatever else a model does by their number would not be what it does by a batch's."""

    def _refuse(self, *_: Any) -> NoReturn:
        raise TypeError(
            "Expected data.num_graphs to be given to a pool and nothing else, because graphs of a lifted model are subgraphs, "
            "got a comparison or arithmetic with it"
        )

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __hash__ = __int__ = __float__ = __index__ = _refuse  # type: ignore[assignment]
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = _refuse


def check_count(name: str, given: Any) -> None:
    """How many graphs a pool gives: as many as there are."""
    if given is not None and not isinstance(given, GraphCount):
        raise TypeError(f"Expected a pool of the graphs that there are, got {name}={given!r}: leave {name} away")


class Pool(nn.Module):
    """A pool that is a module, for Rows."""

    def __init__(self, pool: aggr.Aggregation) -> None:
        super().__init__()
        self.pool = pool

    def forward(self, x: Any, index: Any = None, ptr: Any = None, dim_size: Any = None, dim: int = -2, **more: Any) -> Any:
        if not isinstance(index, NodeBatch):
            return self.pool(x, index, ptr, dim_size, dim, **more)
        check_count("dim_size", dim_size)
        pool: Any = self.pool
        if type(pool) in _HOW:
            return index.pooled(x, _HOW[type(pool)])
        if type(pool) is aggr.SoftmaxAggregation and not pool.semi_grad and pool.channels == 1:
            return index.pooled(x, "softmax", x * pool.t)
        if type(pool) is aggr.AttentionalAggregation:
            inner, gate = pool.nn if pool.mlp is None else pool.mlp, pool.gate_nn if pool.gate_mlp is None else pool.gate_mlp
            return index.pooled(x if inner is None else inner(x), "softmax", gate(x))
        if type(pool) is aggr.MultiAggregation and pool.mode == "cat":
            return torch.cat([part(x, index) for part in pool.aggrs], -1)  # which are such pools themselves
        raise TypeError(
            f"Expected a sum, mean, maximum, softmax or attention as the pool of a lifted model, or several of them side by "
            f"side, got {type(pool).__name__}"
        )
