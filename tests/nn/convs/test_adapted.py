"""Convs that users bring: what is run exactly, and what is refused."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data

import enfa
from enfa.nn.convs import AdaptedConv
from enfa.testing import assert_same_as_full, random_graphs

Maker = Callable[[int, int], nn.Module]


def _mlp(*inside: nn.Module) -> Maker:
    return lambda i, o: pyg.GINConv(nn.Sequential(nn.Linear(i, o), *inside))


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


def test_a_module_that_stands_in_two_places_is_replaced_in_both() -> None:
    norm, drop = nn.BatchNorm1d(4), nn.Dropout(0.4)
    made = AdaptedConv(_mlp(norm, drop, nn.Linear(4, 4), norm, drop)(3, 4))
    kinds = ["Linear", "CountedBatchNorm", "KeyedDropout", "Linear", "CountedBatchNorm", "KeyedDropout"]
    assert [type(m).__name__ for m in made.conv.nn] == kinds


@pytest.mark.parametrize("normed", [nn.utils.parametrizations.weight_norm, nn.utils.parametrizations.spectral_norm])
def test_weights_that_are_computed(normed: Callable[[nn.Module], nn.Module]) -> None:
    torch.manual_seed(0)
    model = enfa.DSGNN(3, 4, 2, 2, lambda i, o: pyg.GINConv(normed(nn.Linear(i, o))))
    assert_same_as_full(model, enfa.NodeMarking(), random_graphs(4, 7, seed=1))


class Before(pyg.MessagePassing):
    """Something for every source."""

    def __init__(self, channels: int, out: int, module: nn.Module) -> None:
        super().__init__(aggr="sum")
        self.module, self.lin = module, nn.Linear(channels, out)

    def forward(self, x: tuple[Tensor, Tensor], edge_index: Tensor) -> Tensor:
        sent = self.module(self.lin(x[0]))
        return self.lin(x[1]) + self.propagate(edge_index, x=(sent, None), size=(len(sent), len(x[1])))

    def message(self, x_j: Tensor) -> Tensor:
        return x_j


@pytest.mark.parametrize("kind", ["full", "distinct"])
@pytest.mark.parametrize("module", [nn.BatchNorm1d(4), nn.Dropout(0.5)], ids=["norm", "dropout"])
@pytest.mark.parametrize("of", ["messages", "sources"])
def test_norms_and_dropout_of_anything_but_conv_rows_are_refused(of: str, module: nn.Module, kind: str) -> None:
    """Also where there are just as many: each node of a directed ring has one message."""
    ring = Data(x=torch.ones(6, 3), edge_index=torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]]))
    inside = copy.deepcopy(module)
    convs: dict[str, Maker] = {
        "messages": lambda i, o: pyg.EdgeConv(nn.Sequential(nn.Linear(2 * i, o), inside)),
        "sources": lambda i, o: Before(i, o, inside),
    }
    model = enfa.DSGNN(3, 4, 2, 2, convs[of], norm="layer")
    plan = enfa.make_plan([ring], enfa.NodeMarking(), model.spec, kind)
    links = plan.layers[0].links
    assert links.num_rows == len(links.in_row)
    with pytest.raises(ValueError, match=r"Expected \d+ rows in flight"):
        model(plan)
