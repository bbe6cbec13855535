"""I²-GNN on every plan, and against subgraphs written out."""

from __future__ import annotations

import copy

import pytest
import torch
from drawn import shaken
from ego_reference import gin_layer, mean_by, nets_of, plain
from torch_geometric.data import Data

import enfa
from enfa.plan.classes import step_classes
from enfa.testing import assert_same_as_full, degenerate_graphs, random_graphs

GRAPHS = random_graphs(3, 7, seed=1, edge_channels=2) + list(degenerate_graphs(edge_channels=2).values())


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        (enfa.NeighborMarking(1), {}),
        (enfa.NeighborMarking(2), {"readout": "node", "pool": "sum", "neighbors": "sum", "mark_every_layer": True}),
        (enfa.NeighborMarking(2, "distances"), {"conv": "gine", "edge_channels": 2, "dropout": 0.3, "residual": True}),
        (enfa.NeighborMarking(1, "distances"), {"pool": "root", "neighbors": "max", "readout": "max", "norm": "layer"}),
        (enfa.MostCentral(enfa.NeighborMarking(1), 2), {"readout": "node"}),
    ],
)
def test_exact(policy: enfa.Policy, options: dict) -> None:
    torch.manual_seed(0)
    model = shaken(enfa.I2GNN(3, 5, 2, 2, mark_channels=policy.mark_channels, **options))
    assert_same_as_full(model, policy, GRAPHS, steps=3)


@pytest.mark.parametrize("readout", ["mean", "node"])
@pytest.mark.parametrize("train", [False, True])
def test_what_subgraphs_written_out_give(readout: str, train: bool) -> None:
    torch.manual_seed(1)
    graphs = [*random_graphs(4, 7, seed=2), *degenerate_graphs().values()]
    graphs = [g for g in graphs if g.num_nodes]
    model = shaken(enfa.I2GNN(3, 5, 2, 3, readout=readout, neighbors="sum")).double()
    right = plain(copy.deepcopy(model)).train(train)
    nets = nets_of(graphs, 2, neighbors=True)
    marks = torch.stack([nets.node == nets.root[nets.net], nets.node == nets.side[nets.net]], 1).double()
    h = torch.cat([nets.x[nets.node], marks], 1)
    for layer in right.layers:
        h = gin_layer(layer, h, nets)
    about = right.subgraph_mlp(nets.mean(h))
    nodes = right.node_mlp(about.new_zeros(len(nets.x), 5).index_add(0, nets.root, about))
    expected = right.head(nodes if readout == "node" else mean_by(nodes, nets.of_graph, len(graphs)))
    found = model.train(train)(enfa.make_plan(graphs, enfa.NeighborMarking(2), model))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_tells_apart_what_ngnn_does_not() -> None:
    """The 4x4 rook's graph and Shrikhande's: strongly regular with equal parameters, beyond NGNN and node marking."""
    cells = [(a, b) for a in range(4) for b in range(4)]
    steps = {(0, 1), (1, 0), (1, 1)}

    def shifted(one: tuple[int, int], other: tuple[int, int]) -> bool:
        apart = ((other[0] - one[0]) % 4, (other[1] - one[1]) % 4)
        return apart in steps or ((-apart[0]) % 4, (-apart[1]) % 4) in steps

    rook = [[i, j] for i, a in enumerate(cells) for j, b in enumerate(cells) if i != j and (a[0] == b[0] or a[1] == b[1])]
    shrikhande = [[i, j] for i, a in enumerate(cells) for j, b in enumerate(cells) if shifted(a, b)]
    pair = [Data(x=torch.ones(16, 1), edge_index=torch.tensor(e).T) for e in (rook, shrikhande)]
    assert [g.num_edges for g in pair] == [96, 96]
    for model, policy, apart in (
        (enfa.NGNN(1, 4, 2, 4, mark_channels=4), enfa.EgoNets(2, "distances"), False),
        (enfa.I2GNN(1, 4, 2, 4), enfa.NeighborMarking(2), True),
    ):
        one, other = step_classes(enfa.make_plan(pair, policy, model, "full"))[-1].tolist()
        assert (one != other) == apart


def test_refuses_other_pools() -> None:
    with pytest.raises(ValueError, match="Expected neighbors to be one of sum, mean, max, got 'root'"):
        enfa.I2GNN(3, 4, 2, 2, neighbors="root")
    with pytest.raises(ValueError, match="Expected marks of 2 channels, got 1 from the policy"):
        enfa.make_plan(GRAPHS, enfa.EgoNets(2, True), enfa.I2GNN(3, 4, 2, 2))
