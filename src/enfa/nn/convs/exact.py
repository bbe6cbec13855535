"""Which convs of users can be computed exactly on shared rows. What is not known to be is refused by name.

A row stands for many (subgraph, node) pairs, and its messages for theirs. So whatever a conv computes must be a function of
one row, or of one row and the multiset of its messages: neither of their order nor of other rows, and nothing drawn.
"""

from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd
from torch_geometric.nn import BatchNorm, GraphNorm, InstanceNorm, LayerNorm, aggr

from enfa.nn.ops.norm import CountedBatchNorm

__all__ = ["AGGREGATIONS", "check_called", "check_exact"]

# Functions of the multiset of messages, their gradients too. A maximum gives equal parts to all that attain it. Not among
# them, for one: a quantile, whose gradient goes to whichever of several equal messages happens to be sorted first.
AGGREGATIONS: tuple[type[nn.Module], ...] = (
    aggr.SumAggregation, aggr.MeanAggregation, aggr.MaxAggregation, aggr.MinAggregation, aggr.MulAggregation,
    aggr.VarAggregation, aggr.StdAggregation, aggr.SoftmaxAggregation, aggr.PowerMeanAggregation,
    aggr.VariancePreservingAggregation, aggr.AttentionalAggregation, aggr.DeepSetsAggregation,
    aggr.MultiAggregation, aggr.DegreeScalerAggregation,  # of these
)  # fmt: skip
# Statistics over a graph or a table: with shared rows there is no graph to take them over.
_OVER_ROWS = {
    "GraphNorm", "GraphSizeNorm", "PairNorm", "MeanSubtractionNorm", "DiffGroupNorm", "HeteroBatchNorm",
}  # fmt: skip
_COUNTED = (nn.BatchNorm1d, nn.SyncBatchNorm, CountedBatchNorm)
# Rows before and behind each other, or looking at each other.
_SEQUENCES = (nn.RNNBase, nn.MultiheadAttention, nn.Transformer, nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)


def check_exact(module: nn.Module) -> None:
    """Refuse what could not be computed exactly on shared rows."""
    # one attention over the results of several aggregations, for each row by itself
    within = {id(part.multihead_attn) for part in module.modules() if hasattr(part, "multihead_attn") and _allowed(part)}
    for part in module.modules():
        name, kinds = type(part).__name__, {kind.__name__ for kind in type(part).__mro__}
        if isinstance(part, aggr.Aggregation) and not _allowed(part):
            allowed = ", ".join(kind.__name__ for kind in AGGREGATIONS)
            raise ValueError(
                f"Expected aggregations that are known to depend on the multiset of the messages and on nothing else "
                f"({allowed}), got {name}"
            )
        if getattr(part, "flow", None) == "target_to_source":
            raise ValueError(f"Expected {name} with flow='source_to_target', as messages are listed, got 'target_to_source'")
        if kinds & _OVER_ROWS or (isinstance(part, _NormBase) and type(part) not in _COUNTED) or _over_a_graph(part):
            raise ValueError(
                f"{name} takes statistics over rows in its own way, but graphs share rows; use torch.nn.BatchNorm1d itself, "
                f"whose statistics plans count, or a layer norm"
            )
        if id(part) not in within and (isinstance(part, _SEQUENCES) or _is_attention(part)):
            raise ValueError(
                f"{name} lets rows see each other, but which rows stand beside each other depends on the plan; where each row "
                f"is a sequence of its own, call it outside of the conv, as h.of(f(h.value))"
            )
        _check_random(part, name)


def check_called(module: nn.Module) -> None:
    """Refuse a norm of each graph by itself, and what picks nodes, on Rows: they would say what they fail at, not why."""
    whole = type(module) is LayerNorm and module.mode == "graph"
    if whole or type(module) in (GraphNorm, InstanceNorm, nn.InstanceNorm1d):
        name = type(module).__name__ + ("(mode='graph')" if whole else "")
        raise TypeError(
            f"Expected no norm with statistics per graph on Rows, which graphs share, got {name}: use torch.nn.BatchNorm1d, "
            f"whose statistics plans count, or torch.nn.LayerNorm"
        )
    if any(kind.__module__.startswith("torch_geometric.nn.pool.") for kind in type(module).__mro__):
        raise TypeError(
            f"Expected a model that keeps all nodes until it pools them, got {type(module).__name__}, which picks or merges "
            f"some of each graph: weigh them in the pool instead (torch_geometric.nn.aggr.AttentionalAggregation; "
            f"bag.pool(h, 'softmax', score=...))"
        )


def _allowed(part: nn.Module) -> bool:
    return type(part) in (*AGGREGATIONS, aggr.fused.FusedAggregation)  # what a MultiAggregation makes of its own


def _over_a_graph(part: nn.Module) -> bool:
    """A layer norm over all rows of a graph; a batch norm that does something else for a single row."""
    name = {kind.__name__ for kind in type(part).__mro__}
    whole = "LayerNorm" in name and getattr(part, "mode", None) == "graph"
    return whole or (isinstance(part, BatchNorm) and part.allow_single_element)


def _is_attention(part: nn.Module) -> bool:
    return any(kind.__module__.startswith("torch_geometric.nn.attention") for kind in type(part).__mro__)


def _check_random(part: nn.Module, name: str) -> None:
    if isinstance(part, nn.RReLU) or (isinstance(part, _DropoutNd) and type(part) is not nn.Dropout):
        raise ValueError(f"{name} draws per copy of a row; use torch.nn.Dropout itself, whose masks plans can share")
    for key, value in vars(part).items():  # a list of them in torch_geometric.nn.MLP
        rates = value if isinstance(value, (list, tuple)) else [value]
        rate = max((r for r in rates if isinstance(r, (int, float)) and not isinstance(r, bool)), default=0.0)
        if "drop" in key and rate > 0.0:
            raise ValueError(
                f"{name} has {key}={rate} inside, which draws per copy of a row or message: give {key}=0, and drop between "
                f"layers (F.dropout, torch.nn.Dropout)"
            )
