"""NGNN on every plan, and against ego nets written out."""

from __future__ import annotations

import copy

import pytest
import torch
from drawn import shaken
from ego_reference import gin_layer, mean_by, nets_of, plain
from torch_geometric.nn import GATv2Conv

import enfa
from enfa.testing import assert_same_as_full, degenerate_graphs, random_graphs

GRAPHS = random_graphs(4, 8, seed=1, edge_channels=2) + list(degenerate_graphs(edge_channels=2).values())


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        (enfa.EgoNets(2, "distances"), {}),
        (enfa.EgoNets(1, "distances"), {"mark_every_layer": True, "pool": "sum", "readout": "sum", "jk": "concat"}),
        (enfa.EgoNets(2, True), {"readout": "node", "conv": "gine", "edge_channels": 2, "dropout": 0.3, "residual": True}),
        (enfa.EgoNets(2, True), {"pool": "root", "readout": "max", "norm": "layer"}),
        (enfa.Subsample(enfa.EgoNets(2, True), fraction=0.5), {"pool": "max", "readout": "node"}),
        (enfa.EgoNets(2), {"conv": lambda i, o: GATv2Conv((i, i), o, add_self_loops=False), "mark_channels": 0}),
    ],
)
def test_exact(policy: enfa.Policy, options: dict) -> None:
    torch.manual_seed(0)
    options = {"mark_channels": policy.mark_channels, **options}
    assert_same_as_full(shaken(enfa.NGNN(3, 5, 2, 2, **options)), policy, GRAPHS, steps=3)


@pytest.mark.parametrize("readout", ["mean", "node"])
@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("train", [False, True])
def test_what_ego_nets_written_out_give(readout: str, every: bool, train: bool) -> None:
    torch.manual_seed(1)
    graphs, hops = random_graphs(5, 7, seed=2), 2
    options = {"readout": readout, "mark_channels": hops + 2, "mark_every_layer": every, "residual": True}
    model = shaken(enfa.NGNN(3, 5, 2, 3, **options)).double()
    right = plain(copy.deepcopy(model)).train(train)
    nets = nets_of(graphs, hops)
    marks = torch.nn.functional.one_hot(nets.hop, hops + 2).double()
    h = torch.cat([nets.x[nets.node], marks], 1)
    for layer in right.layers:
        given = torch.cat([h, layer.mark(marks)], 1) if every else h
        out = gin_layer(layer, given, nets)
        h = out + h if every and out.shape == h.shape else out  # the residual is of the layer's input, without marks
    about = right.subgraph_mlp(nets.mean(h))  # net v is that of node v
    expected = right.head(about if readout == "node" else mean_by(about, nets.of_graph, len(graphs)))
    policy = enfa.EgoNets(hops, "distances")
    found = model.train(train)(enfa.make_plan(graphs, policy, model))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_refuses_what_it_does_not_have() -> None:
    with pytest.raises(ValueError, match=r"Expected pool to be one of sum, mean, max, root, got 'center'"):
        enfa.NGNN(3, 4, 2, 2, pool="center")
    with pytest.raises(ValueError, match=r"Expected readout to be one of sum, mean, max, node, got 'root'"):
        enfa.NGNN(3, 4, 2, 2, readout="root")
    with pytest.raises(TypeError, match=r"^NGNN takes no bag: readout says"):
        enfa.NGNN(3, 4, 2, 2, bag="mean")
    with pytest.raises(ValueError, match=r"Expected mark_channels to be an integer >= 1, got 0"):
        enfa.NGNN(3, 4, 2, 2, mark_channels=0, mark_every_layer=True)
