"""What is refused because shared rows would get it wrong, and which aggregations they get right."""

from collections.abc import Callable

import pytest
import torch
import torch_geometric
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data
from torch_geometric.nn import aggr

import enfa
from enfa.nn.convs.exact import AGGREGATIONS
from enfa.testing import assert_same_as_full, degenerate_graphs, random_graphs

Maker = Callable[[int, int], nn.Module]
ALLOWED = ".*".join(kind.__name__ for kind in AGGREGATIONS)


def _mlp(*inside: nn.Module) -> Maker:
    return lambda i, o: pyg.GINConv(nn.Sequential(nn.Linear(i, o), *inside))


def _planned(conv: Maker) -> enfa.Bag:
    """Convs are looked at when they are first called, which is when a model is traced."""
    return enfa.make_plan(random_graphs(2, 6, seed=1), enfa.NodeMarking(), enfa.DSGNN(3, 4, 2, 2, conv))


class MyDropout(nn.Dropout):
    pass


class MyBatchNorm(nn.BatchNorm1d):
    pass


class MyGCN(pyg.GCNConv):
    pass


class MyPairNorm(pyg.PairNorm):
    pass


class MySum(aggr.SumAggregation):
    pass


class Drops(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.drop_prob = 0.1


def _to_source(i: int, o: int) -> nn.Module:
    return pyg.SAGEConv((i, i), o, flow="target_to_source")


@pytest.mark.parametrize(
    ("conv", "message"),
    [
        (_to_source, "Expected SAGEConv with flow='source_to_target', as messages are listed, got 'target_to_source'"),
        (lambda i, o: pyg.GATv2Conv((i, i), o, add_self_loops=False, dropout=0.2), "GATv2Conv has dropout=0.2 inside"),
        (lambda i, o: pyg.TransformerConv((i, i), o, dropout=0.3), "TransformerConv .*: give dropout=0, and drop"),
        (lambda i, o: pyg.GINConv(pyg.MLP([i, o, o], dropout=0.5)), "MLP has dropout=0.5 inside"),
        (lambda i, o: pyg.GINConv(pyg.MLP([i, o, o], norm="graph_norm")), "GraphNorm takes statistics over rows"),
        (lambda i, o: _mlp(pyg.LayerNorm(o))(i, o), "LayerNorm takes statistics over rows"),
        (lambda i, o: _mlp(nn.InstanceNorm1d(o))(i, o), "InstanceNorm1d takes statistics over rows"),
        (lambda i, o: _mlp(pyg.PairNorm())(i, o), "PairNorm takes statistics over rows"),
        (_mlp(nn.AlphaDropout(0.5)), "AlphaDropout draws per copy of a row; use torch.nn.Dropout itself"),
        (_mlp(nn.Dropout1d(0.5)), "Dropout1d draws per copy"),
        (_mlp(nn.RReLU()), "RReLU draws per copy"),
        (_mlp(nn.Dropout2d(0.5)), "Dropout2d draws per copy"),
        (_mlp(nn.FeatureAlphaDropout(0.5)), "FeatureAlphaDropout draws per copy"),
        (_mlp(MyDropout(0.5)), "MyDropout draws per copy of a row; use torch.nn.Dropout itself"),
        (_mlp(Drops()), "Drops has drop_prob=0.1 inside"),
        (_mlp(MyBatchNorm(4)), "MyBatchNorm takes statistics over rows.*use torch.nn.BatchNorm1d itself"),
        (_mlp(nn.LazyBatchNorm1d()), "LazyBatchNorm1d takes statistics over rows"),
        (_mlp(nn.BatchNorm2d(4)), "BatchNorm2d takes statistics over rows"),
        (_mlp(nn.utils.parametrizations.weight_norm(nn.BatchNorm1d(4), dim=None)), "ParametrizedBatchNorm1d takes stat"),
        (_mlp(pyg.BatchNorm(4, allow_single_element=True)), "BatchNorm takes statistics over rows"),
        (_mlp(pyg.InstanceNorm(4)), "InstanceNorm takes statistics over rows"),
        (_mlp(pyg.GraphSizeNorm()), "GraphSizeNorm takes statistics over rows"),
        (_mlp(pyg.MeanSubtractionNorm()), "MeanSubtractionNorm takes statistics over rows"),
        (_mlp(pyg.DiffGroupNorm(4, 2)), "DiffGroupNorm takes statistics over rows"),
        (_mlp(pyg.HeteroBatchNorm(4, 2)), "HeteroBatchNorm takes statistics over rows"),
        (_mlp(MyPairNorm()), "MyPairNorm takes statistics over rows"),
        (_mlp(nn.MultiheadAttention(4, 1)), "MultiheadAttention lets rows see each other"),
        (_mlp(nn.LSTM(4, 4)), r"LSTM lets rows see each other.*outside of the conv, as h.of\(f\(h.value\)\)"),
        (_mlp(pyg.attention.PerformerAttention(4, 1)), "PerformerAttention lets rows see each other"),
    ],
)
def test_refuses_what_shared_rows_would_get_wrong(conv: Maker, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _planned(conv)


@pytest.mark.parametrize(
    "made",
    [
        aggr.LSTMAggregation(4, 4), aggr.GRUAggregation(4, 4), aggr.SortAggregation(2),
        aggr.MLPAggregation(4, 4, 8, num_layers=1), aggr.PatchTransformerAggregation(4, 4, 2, 4), aggr.LCMAggregation(4, 4),
        aggr.EquilibriumAggregation(4, 4, [4]),
        aggr.SetTransformerAggregation(4), aggr.GraphMultisetTransformer(4, 2), aggr.Set2Set(4, 2), MySum(),
        aggr.MedianAggregation(), aggr.QuantileAggregation(0.3),
    ],
    ids=lambda made: type(made).__name__,
)  # fmt: skip
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "among others"])
def test_refuses_aggregations_that_are_not_known_to_be_exact(made: nn.Module, inside: bool) -> None:
    message = rf"Expected aggregations that are known.*\({ALLOWED}\), got {type(made).__name__}"
    with pytest.raises(ValueError, match=message):
        _planned(lambda i, o: Reading(i, o, aggr.MultiAggregation(["sum", made]) if inside else made))


class Reading(pyg.MessagePassing):
    """Aggregates messages of four channels into any number."""

    def __init__(self, channels: int, out: int, how: str | nn.Module, zero: bool = False) -> None:
        super().__init__(aggr=how)
        self.sent, self.own = nn.Linear(channels, 4, bias=not zero), nn.Linear(channels, out)
        with torch.no_grad():  # some zeros keep products from vanishing, and make ties
            self.sent.weight.mul_(0.0 if zero else 1.0)
            width = self.aggr_module(torch.ones(2, 4), torch.arange(2), dim_size=2).shape[1]
        self.got = nn.Linear(width, out)

    def forward(self, x: tuple[Tensor, Tensor], edge_index: Tensor) -> Tensor:
        sent = self.sent(x[0])
        return self.own(x[1]) + self.got(self.propagate(edge_index, x=(sent, sent)))

    def message(self, x_j: Tensor) -> Tensor:
        return x_j


DEGREES = torch.tensor([1, 4, 3, 2])
# before, PyG's gradients of powers of 0 are NaN
FINITE_POWERS = tuple(map(int, torch_geometric.__version__.split(".")[:2])) >= (2, 8)
EXACT: dict[str, Callable[[], str | nn.Module]] = {
    "sum": lambda: "sum",
    "mean": lambda: "mean",
    "max": lambda: "max",
    "min": lambda: "min",
    "mul": lambda: "mul",
    "var": lambda: "var",
    "std": lambda: "std",
    "softmax": lambda: aggr.SoftmaxAggregation(learn=True, channels=4),
    "powermean": lambda: aggr.PowerMeanAggregation(p=2.0, learn=FINITE_POWERS),
    "variance preserving": lambda: aggr.VariancePreservingAggregation(),
    "attentional": lambda: aggr.AttentionalAggregation(nn.Linear(4, 1), pyg.MLP([4, 3, 3], norm=None)),
    "deep sets": lambda: aggr.DeepSetsAggregation(nn.Sequential(nn.Linear(4, 3), nn.ReLU()), pyg.MLP([3, 3, 2], norm=None)),
    "many": lambda: aggr.MultiAggregation(["mean", "max", "std", "softmax"]),
    "many, attended": lambda: aggr.MultiAggregation(["sum", "max", "powermean"], mode="attn", mode_kwargs=ATTENDED),
    "many, the largest": lambda: aggr.MultiAggregation(["mean", "min", "var"], mode="max"),
    "scaled by degree": lambda: aggr.DegreeScalerAggregation(
        ["mean", "max", "std"], ["identity", "amplification", "attenuation", "inverse_linear"], DEGREES, train_norm=True
    ),
}
ATTENDED = {"in_channels": 4, "out_channels": 4, "num_heads": 2}


def _graphs() -> list[Data]:
    """With equal features at several nodes, so that messages tie."""
    graphs = [*degenerate_graphs().values(), *random_graphs(4, 7, seed=1, loops=True)]
    return [Data(x=(graph.x[:, :2] > 0).float(), edge_index=graph.edge_index) for graph in graphs]


OWN_DEGREES: dict[str, Maker] = {
    "GCNConv": pyg.GCNConv, "SGConv": pyg.SGConv, "MyGCN": MyGCN, "GATConv": lambda i, o: pyg.GATConv((i, i), o),
    "GATv2Conv": lambda i, o: pyg.GATv2Conv((i, i), o),
    "weight norm": lambda i, o: pyg.GINConv(nn.utils.parametrizations.weight_norm(nn.Linear(i, o))),
}  # fmt: skip


@pytest.mark.parametrize("name", OWN_DEGREES)
def test_convs_with_degrees_loops_and_weights_of_their_own_are_exact(name: str) -> None:
    torch.manual_seed(0)
    graphs = [graph for graph in _graphs() if not graph.has_self_loops()]
    assert_same_as_full(enfa.DSGNN(2, 4, 2, 2, OWN_DEGREES[name]), enfa.NodeMarking(), graphs)


def test_other_readers_of_the_edge_list_are_refused() -> None:
    with pytest.raises(TypeError, match=r"The model reads the edge list by itself \(ne\)"):
        _planned(lambda i, o: pyg.ChebConv(i, o, 2))


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("zero", [False, True], ids=["", "all tie"])
def test_allowed_aggregations_are_exact(name: str, zero: bool) -> None:
    """Also where all messages are equal although what they are computed from is not: their gradients differ."""
    if zero and name == "powermean" and not FINITE_POWERS:
        pytest.skip("PyG's own gradient is NaN")
    torch.manual_seed(0)
    model = enfa.DSGNN(2, 4, 2, 2, lambda i, o: Reading(i, o, EXACT[name](), zero))
    assert_same_as_full(model, enfa.NodeMarking(), _graphs(), steps=0 if zero else 3)


def test_every_allowed_aggregation_is_tested() -> None:
    made = [Reading(3, 4, how()).aggr_module for how in EXACT.values()]
    assert {type(part) for part in made} == set(AGGREGATIONS)
