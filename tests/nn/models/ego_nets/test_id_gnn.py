"""ID-GNN on every plan, and against ego nets written out."""

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
        (enfa.EgoNets(2, True), {}),
        (enfa.EgoNets(1, True), {"readout": "node", "conv": "gine", "edge_channels": 2, "dropout": 0.3}),
        (enfa.NodeMarking(), {"pool": "sum", "readout": "sum", "jk": "sum", "residual": True}),
    ],
)
def test_exact(policy: enfa.Policy, options: dict) -> None:
    torch.manual_seed(0)
    assert_same_as_full(shaken(enfa.IDGNN(3, 5, 2, 2, **options)), policy, GRAPHS, steps=3)


@pytest.mark.parametrize("readout", ["mean", "node"])
@pytest.mark.parametrize("train", [False, True])
def test_what_ego_nets_written_out_give(readout: str, train: bool) -> None:
    torch.manual_seed(1)
    graphs = random_graphs(5, 7, seed=2)
    model = shaken(enfa.IDGNN(3, 5, 2, 3, readout=readout)).double()
    right = plain(copy.deepcopy(model)).train(train)
    nets = nets_of(graphs, 2)
    h = nets.x[nets.node]
    root = (nets.node == nets.root[nets.net])[:, None].double()
    h = torch.cat([h, root], 1)
    for layer in right.layers:
        sent = torch.where(root > 0, layer.root(h), layer.others(h))
        h = gin_layer(layer, sent, nets)
    about = right.subgraph_mlp(h[nets.at_root])
    expected = right.head(about if readout == "node" else mean_by(about, nets.of_graph, len(graphs)))
    found = model.train(train)(enfa.make_plan(graphs, enfa.EgoNets(2, True), model))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_refuses_policies_that_do_not_mark_the_root() -> None:
    with pytest.raises(ValueError, match=r"^Expected mark_channels=1, which marks the root, for IDGNN, got 4$"):
        enfa.IDGNN(3, 4, 2, 2, mark_channels=4)
    with pytest.raises(ValueError, match=r"^Expected a policy that marks the root, such as"):
        enfa.make_plan(GRAPHS, enfa.EgoNets(2), enfa.IDGNN(3, 4, 2, 2))
    with pytest.raises(TypeError, match=r"^IDGNN reads the mark of the root in every layer"):
        enfa.IDGNN(3, 4, 2, 2, mark_every_layer=True)
