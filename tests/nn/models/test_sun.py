import pytest
import torch
from drawn import shaken
from every_pair import Pairs, assert_formula, mean, total
from torch import Tensor

import enfa
from enfa.testing import assert_same_as_full, degenerate_graphs, random_graphs

EDGES = {"gine": [4, 2], "gin": None, "gcn": None}


def _graphs(conv: str) -> list:
    channels = EDGES[conv]
    some = random_graphs(3, 7, channels=[5], edge_channels=channels, loops=True, parallel=True)
    return some + list(degenerate_graphs([5], channels).values())


def _model(policy: enfa.Policy, conv: str, **options: object) -> enfa.SUN:
    torch.manual_seed(2)
    return shaken(enfa.SUN([5], 6, 2, 2, conv, edge_channels=EDGES[conv], mark_channels=policy.mark_channels, **options))


@pytest.mark.parametrize(
    "policy",
    [enfa.NodeMarking(), enfa.NodeMarking(distances=2), enfa.EgoNets(1, mark=True), enfa.EgoNets(2, mark=True, isolate=True)],
    ids=str,
)
def test_same_as_full(policy: enfa.Policy) -> None:
    assert_same_as_full(_model(policy, "gine"), policy, _graphs("gine"), steps=1)


@pytest.mark.parametrize(
    ("conv", "options"),
    [
        ("gin", {"pool": "mean", "mark_features": False, "readout": "sum"}),
        ("gcn", {"readout": "root", "norm": "layer", "residual": True}),
        ("gine", {"readout": "node", "jk": "concat", "bag": "sum"}),
        ("gin", {"jk": "sum", "norm": None, "dropout": 0.3}),
    ],
    ids=str,
)
def test_options_are_the_same_as_full(conv: str, options: dict) -> None:
    policy = enfa.NodeMarking()
    assert_same_as_full(_model(policy, conv, **options), policy, _graphs(conv), steps=0)


def _formula(model: enfa.SUN, pairs: Pairs) -> Tensor:
    """The docstring's, over all pairs. A norm of some rows is PyTorch's own of these rows."""
    root = pairs.sub == pairs.node
    marks = torch.stack([root, ~root], 1).double()
    h = torch.cat([model.encoder.embed(pairs.x), marks[:, : model.encoder.out_channels - 6]], 1)
    hot, plain = (torch.cat([torch.eye(4)[a[:, 0]], torch.eye(2)[a[:, 1]]], 1).double() for a in (pairs.attr, pairs.plain_attr))
    for layer in model.layers:
        own = h[pairs.own[root]]  # of every node, and of every subgraph, in the same order
        seen, pooled = mean(h, pairs.node, pairs.num_nodes), total(h, pairs.sub, pairs.num_nodes)

        def inside(conv, h=h):
            return pairs.gine(conv, h, pairs.within, hot @ conv.edge.weight.T)

        def around(conv, seen=seen):
            return pairs.gine(conv, seen, pairs.plain, plain @ conv.edge.weight.T)

        at_pair = inside(layer.conv)
        out = torch.zeros_like(at_pair)
        out[~root] = layer.norm(at_pair[~root])
        of_node = layer.vv(own) + layer.seen_norm(around(layer.seen_conv))
        out = out + layer.kv(h) + of_node[pairs.node] + (layer.kk(own) + layer.pooled(pooled))[pairs.sub]
        roots = layer.root_norm(inside(layer.root_conv)[root]) + layer.root_vv(own)
        roots = roots + layer.root_seen_norm(around(layer.root_seen_conv)) + layer.root_pooled(pooled)
        h = out.index_put((root.nonzero()[:, 0],), roots).relu()
    by_subgraph = mean(h, pairs.sub, pairs.num_nodes)
    return model.head(mean(by_subgraph, pairs.graph[root], pairs.num_graphs))


@pytest.mark.parametrize("mark_features", [True, False])
def test_is_the_formula(mark_features: bool) -> None:
    policy = enfa.NodeMarking()
    graphs = [graph for graph in _graphs("gine") if graph.num_nodes]  # the bag of no nodes is one subgraph of none
    assert_formula(_model(policy, "gine", mark_features=mark_features), policy, graphs, _formula)


def test_batches_of_single_nodes_have_no_other_rows_to_normalise() -> None:
    """PyTorch's own BatchNorm leaves its statistics as they are, given no rows at all."""
    graphs = [graph for graph in random_graphs(30, 3, channels=[5]) if graph.num_nodes == 1]
    assert len(graphs) > 2
    model = _model(enfa.NodeMarking(), "gin").train()
    out = model(enfa.make_plan(graphs, enfa.NodeMarking(), model))
    assert bool(out.isfinite().all())
    assert not bool(model.layers[0].norm.running_mean.any()) and bool(model.layers[0].root_norm.running_mean.any())


def test_roots_are_told_by_marks() -> None:
    graphs = random_graphs(2, 5, channels=[5])
    with pytest.raises(ValueError, match=r"^Expected mark_channels >= 1, because roots are told by their marks, got 0$"):
        enfa.SUN([5], 6, 2, 2, mark_channels=0)
    model = enfa.SUN([5], 6, 2, 2)
    with pytest.raises(ValueError, match=r"^Expected a policy that marks roots in the first channel of its marks"):
        enfa.make_plan(graphs, enfa.EgoNets(1), model)


def test_unknown_pools_list_the_known_ones() -> None:
    with pytest.raises(ValueError, match="Expected pool to be one of sum, mean, got 'max'"):
        enfa.SUN(3, 4, 2, 2, pool="max")
