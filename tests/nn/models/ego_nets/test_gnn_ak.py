"""GNN-AK+ on every plan, and against ego nets written out."""

from __future__ import annotations

import copy

import pytest
import torch
from drawn import shaken
from ego_reference import gin_layer, mean_by, nets_of, plain

import enfa
from enfa.testing import assert_same_as_full, degenerate_graphs, random_graphs

GRAPHS = random_graphs(4, 8, seed=1, edge_channels=2) + list(degenerate_graphs(edge_channels=2).values())


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        (enfa.EgoNets(2, "distances"), {}),
        (enfa.EgoNets(1, "distances"), {"conv": "gine", "edge_channels": 2, "dropout": 0.3, "readout": "node"}),
        (enfa.EgoNets(2, True), {"pool": "sum", "readout": "max", "norm": "layer", "residual": False, "inner_layers": 1}),
        (enfa.NodeMarking(distances=1), {"readout": "sum", "share": "graph"}),
    ],
)
def test_exact(policy: enfa.Policy, options: dict) -> None:
    torch.manual_seed(0)
    model = shaken(enfa.GNNAK(3, 5, 2, 2, hop_channels=3, mark_channels=policy.mark_channels, **options))
    assert_same_as_full(model, policy, GRAPHS, steps=3)


@pytest.mark.parametrize("readout", ["mean", "node"])
@pytest.mark.parametrize("train", [False, True])
def test_what_ego_nets_written_out_give(readout: str, train: bool) -> None:
    torch.manual_seed(1)
    graphs, hops = random_graphs(5, 7, seed=2), 2
    model = shaken(enfa.GNNAK(3, 5, 2, 2, hop_channels=3, mark_channels=hops + 2, readout=readout)).double()
    right = plain(copy.deepcopy(model)).train(train)
    nets = nets_of(graphs, hops)
    marks = torch.nn.functional.one_hot(nets.hop, hops + 2).double()
    x = right.embed(nets.x)
    for layer in right.layers:
        hop = layer.hop(marks)
        h = torch.cat([x[nets.node], hop], 1)
        for inner in layer.inner:
            h = gin_layer(inner, h, nets)
        h = layer.out(h)
        gates = [gate(hop) for gate in layer.gates]
        centroid = (h * gates[0])[nets.at_root]
        about = nets.mean(layer.subgraph(h) * gates[1])
        context = mean_by(layer.context(h) * gates[2], nets.node, len(x))
        x = layer.norm(centroid + about + context).relu() + x
    expected = right.head(x if readout == "node" else mean_by(x, nets.of_graph, len(graphs)))
    found = model.train(train)(enfa.make_plan(graphs, enfa.EgoNets(hops, "distances"), model))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_refuses_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match=r"Expected mark_channels to be an integer >= 1, got 0"):
        enfa.GNNAK(3, 4, 2, 2, mark_channels=0)
    with pytest.raises(ValueError, match=r"Expected pool to be one of mean, sum, got 'max'"):
        enfa.GNNAK(3, 4, 2, 2, mark_channels=1, pool="max")
    with pytest.raises(ValueError, match=r"Expected a conv that reads edge attributes for edge_channels=2, got conv='gin'"):
        enfa.GNNAK(3, 4, 2, 2, mark_channels=1, edge_channels=2)
    with pytest.raises(ValueError, match=r"^Expected every node to be the root of one subgraph, for bag.diagonal"):
        enfa.make_plan(GRAPHS, enfa.NeighborMarking(1), enfa.GNNAK(3, 4, 2, 2, mark_channels=2))
