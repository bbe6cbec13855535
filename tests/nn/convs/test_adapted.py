"""Convs that users bring: what is run exactly, and what is refused."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg

import enfa
from enfa.nn.convs import AdaptedConv
from enfa.testing import assert_same_as_full, random_graphs

Maker = Callable[[int, int], nn.Module]


def _mlp(*inside: nn.Module) -> Maker:
    return lambda i, o: pyg.GINConv(nn.Sequential(nn.Linear(i, o), *inside))


@pytest.mark.parametrize(
    ("conv", "message"),
    [
        (lambda i, o: pyg.GCNConv(i, o), "GCNConv reads degrees of the graph by itself; use conv='gcn'"),
        (lambda i, o: pyg.ChebConv(i, o, 2), "ChebConv reads degrees"),
        (lambda i, o: pyg.SGConv(i, o), "SGConv reads degrees"),
        (lambda i, o: pyg.SAGEConv((i, i), o, aggr="lstm"), "LSTMAggregation depends on the order of the messages"),
        (lambda i, o: pyg.GATv2Conv((i, i), o), "GATv2Conv has add_self_loops=True.*pass add_self_loops=False"),
        (lambda i, o: pyg.GATConv((i, i), o), "GATConv has add_self_loops=True"),
        (lambda i, o: pyg.GATv2Conv((i, i), o, add_self_loops=False, dropout=0.2), "GATv2Conv has dropout=0.2 inside"),
        (lambda i, o: pyg.TransformerConv((i, i), o, dropout=0.3), "TransformerConv has dropout=0.3 inside"),
        (lambda i, o: pyg.GINConv(pyg.MLP([i, o, o], dropout=0.5)), "MLP has dropout=0.5 inside"),
        (lambda i, o: pyg.GINConv(pyg.MLP([i, o, o], norm="graph_norm")), "GraphNorm takes statistics per graph"),
        (lambda i, o: _mlp(pyg.LayerNorm(o))(i, o), "LayerNorm takes statistics per graph"),
        (lambda i, o: _mlp(nn.InstanceNorm1d(o))(i, o), "InstanceNorm1d takes statistics per graph"),
        (lambda i, o: _mlp(pyg.PairNorm())(i, o), "PairNorm takes statistics per graph"),
        (_mlp(nn.AlphaDropout(0.5)), "AlphaDropout draws per copy of a row; use torch.nn.Dropout"),
        (_mlp(nn.Dropout1d(0.5)), "Dropout1d draws per copy"),
        (_mlp(nn.RReLU()), "RReLU draws per copy"),
    ],
)
def test_refuses_what_shared_rows_would_get_wrong(conv: Maker, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        enfa.DSGNN(3, 4, 2, 2, conv)


@pytest.mark.parametrize("conv", [lambda i, o: nn.Linear(i, o), lambda i, o: None, lambda i, o: pyg.GINConv])
def test_a_callable_makes_a_conv(conv: Maker) -> None:
    message = r"Expected conv\(in, out\) to make a PyG conv, called as \(x, edge_index\), got"
    with pytest.raises(TypeError, match=message):
        enfa.DSGNN(3, 4, 2, 2, conv)


def test_edge_attributes_are_asked_for() -> None:
    message = "Expected edge_channels for conv=GINEConv, which reads edge attributes, got None"
    with pytest.raises(ValueError, match=message):
        enfa.DSGNN(3, 4, 2, 2, lambda i, o: pyg.GINEConv(nn.Linear(i, o)))


@pytest.mark.parametrize(
    "conv",
    [
        _mlp(nn.Dropout(0.4)),
        _mlp(nn.BatchNorm1d(4), nn.Dropout(0.4)),
        lambda i, o: pyg.GINConv(pyg.MLP([i, o, o])),
        lambda i, o: pyg.SAGEConv((i, i), o, aggr=["mean", "max", "std"]),
        lambda i, o: pyg.SAGEConv((i, i), o, normalize=True, project=True),
        lambda i, o: pyg.EdgeConv(nn.Linear(2 * i, o)),
        lambda i, o: pyg.ResGatedGraphConv((i, i), o),
        lambda i, o: pyg.GENConv((i, i), o),
        lambda i, o: pyg.MFConv((i, i), o),
        lambda i, o: _mlp(nn.LayerNorm(o))(i, o),
    ],
    ids=[
        "dropout inside", "batch norm and dropout inside", "PyG's MLP", "three aggregations", "SAGE's options",
        "EdgeConv", "ResGatedGraphConv", "GENConv", "MFConv", "layer norm inside",
    ],
)  # fmt: skip
def test_runs_what_it_does_not_refuse(conv: Maker) -> None:
    torch.manual_seed(0)
    model = enfa.DSGNN(3, 4, 2, 2, conv, norm="layer", jk="concat")
    assert_same_as_full(model, enfa.NodeMarking(), random_graphs(4, 7, seed=1, loops=True))


def test_norms_and_dropout_inside_are_replaced() -> None:
    made = AdaptedConv(_mlp(nn.BatchNorm1d(4), nn.Dropout(0.4))(3, 4))
    assert [type(m).__name__ for m in made.conv.nn] == ["Linear", "CountedBatchNorm", "KeyedDropout"]


def test_reads_edges_only_if_the_conv_was_made_to() -> None:
    with_, without = (
        AdaptedConv(pyg.GATv2Conv((3, 3), 4, add_self_loops=False, edge_dim=dim)) for dim in (2, None)
    )
    assert with_.reads_edges and not without.reads_edges
    assert enfa.DSGNN(3, 4, 2, 1, lambda i, o: pyg.SAGEConv((i, i), o)).spec.edge_attr is False


@pytest.mark.parametrize(
    ("conv", "name"),
    [
        (lambda i, o: pyg.SAGEConv((i, i), o), "SAGEConv"),
        (lambda i, o: pyg.GATv2Conv((i, i), o, add_self_loops=False), "GATv2Conv"),  # made without an edge_dim
    ],
)
def test_edge_channels_that_it_does_not_read_are_refused(conv: Maker, name: str) -> None:
    with pytest.raises(ValueError, match=f"for edge_channels=2, got conv={name}, which reads none: use conv='gine', or"):
        enfa.DSGNN(3, 4, 2, 1, conv, edge_channels=2)
