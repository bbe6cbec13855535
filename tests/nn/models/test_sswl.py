import copy

import pytest
import torch
from drawn import shaken
from every_pair import Pairs, assert_formula, total
from torch import Tensor, nn

import enfa
from enfa.nn.models.sswl import num_nodes
from enfa.testing import assert_same_as_full, degenerate_graphs, random_graphs

EDGES = {"gine": [4, 2], "gine, floats": 2, "gin": None}


def _graphs(edges: str) -> list:
    channels = EDGES[edges]
    some = random_graphs(3, 7, channels=[5], edge_channels=channels, loops=True, parallel=True)
    return some + list(degenerate_graphs([5], channels).values())


def _model(policy: enfa.Policy, edges: str, **options: object) -> enfa.SSWLGNN:
    torch.manual_seed(2)
    conv = edges.split(",")[0]
    first = ([5], 6, 2, 2, conv)
    return shaken(enfa.SSWLGNN(*first, edge_channels=EDGES[edges], mark_channels=policy.mark_channels, **options))


@pytest.mark.parametrize(
    "policy",
    [enfa.NodeMarking(distances=2), enfa.NodeMarking(), enfa.EgoNets(1, mark=True), enfa.EgoNets(2, isolate=True)],
    ids=str,
)
@pytest.mark.parametrize("edges", EDGES)
def test_same_as_full(edges: str, policy: enfa.Policy) -> None:
    assert_same_as_full(_model(policy, edges), policy, _graphs(edges), steps=1)


@pytest.mark.parametrize(
    "options",
    [
        {"readout": "root", "norm": "layer", "residual": True},
        {"readout": "node", "jk": "concat"},
        {"readout": "max", "jk": "sum", "bag": "sum", "norm": None},
        {"readout": "mean", "dropout": 0.3},
    ],
    ids=str,
)
def test_options_are_the_same_as_full(options: dict) -> None:
    policy = enfa.NodeMarking(distances=1)
    assert_same_as_full(_model(policy, "gine", **options), policy, _graphs("gine"), steps=0)


def _formula(model: enfa.SSWLGNN, pairs: Pairs) -> Tensor:
    """The docstring's, over all pairs: marks are distances of 0, 1, 2, and more."""
    h = model.encoder.embed(pairs.x) + model.encoder.mark.weight.T[pairs.hop.clamp(max=3)]
    # a one-hot channel for every bond type, and two for those of the second column
    hot = torch.cat([torch.eye(4)[pairs.attr[:, 0]], torch.eye(2)[pairs.attr[:, 1]]], 1).double()
    for layer in model.layers:
        out = pairs.gine(layer.conv, h, pairs.within, hot @ layer.conv.edge.weight.T)
        out = out + pairs.gine(layer.between, h, pairs.between, hot @ layer.between.edge.weight.T)
        h = layer.norm(out + layer.point((1 + layer.eps) * h + h[pairs.own])).relu()
    pooled = model.subgraph_mlp(total(h, pairs.sub, pairs.num_nodes)[pairs.sub])
    size = torch.bincount(pairs.graph, minlength=pairs.num_graphs).clamp(min=1)
    return model.head(total(pooled, pairs.graph, pairs.num_graphs) / size[:, None])


def test_is_the_formula() -> None:
    policy = enfa.NodeMarking(distances=2)
    assert_formula(_model(policy, "gine"), policy, _graphs("gine"), _formula)


def test_messages_of_graphs_without_edge_attributes_are_positive() -> None:
    """As where an embedding of edges is added that is zero."""
    policy, graphs = enfa.NodeMarking(distances=2), _graphs("gine")
    without, zero = _model(policy, "gin").double(), _model(policy, "gine").double()
    with torch.no_grad():
        for layer in zero.layers:
            layer.conv.edge.weight.zero_(), layer.between.edge.weight.zero_()
    zero.load_state_dict(without.state_dict(), strict=False)
    found = [model(enfa.make_plan(graphs, policy, model)) for model in (without, zero)]
    torch.testing.assert_close(found[0], found[1], rtol=1e-10, atol=1e-12)


def test_rows_meet_in_two_tables_a_layer() -> None:
    """Messages of both kinds, and the diagonal beside them: h has no table of its own with any of them."""
    program = enfa.trace(_model(enfa.NodeMarking(), "gine"), _graphs("gine"), enfa.NodeMarking())
    assert [step.op for step in program.steps].count("join") == 2 * 2


def test_other_convs() -> None:
    with pytest.raises(ValueError, match="Expected conv to be one of gin, gine, got 'gcn'"):
        enfa.SSWLGNN(3, 4, 2, 2, "gcn")


@pytest.mark.parametrize("how", ["nn.BatchNorm1d", "nn.Sequential", "nn.SyncBatchNorm"])
def test_parts_that_are_replaced_count_nodes_too(how: str) -> None:
    """In the last norm a subgraph counts as often as it has nodes, whoever has written it."""
    policy, graphs = enfa.NodeMarking(distances=2), _graphs("gine")
    model = _model(policy, "gine").double()
    other = copy.deepcopy(model)
    if how == "nn.Sequential":
        other.subgraph_mlp = nn.Sequential(*other.subgraph_mlp)
    else:
        norm = getattr(nn, how.split(".")[1])(6).double()
        norm.load_state_dict(other.subgraph_mlp[1].state_dict())
        other.subgraph_mlp[1] = norm
    if how == "nn.SyncBatchNorm":
        model, other = model.eval(), other.eval()  # in training it asks for a GPU
    found = [one(enfa.make_plan(graphs, policy, one)) for one in (model, other)]
    torch.testing.assert_close(*found, rtol=1e-12, atol=1e-12)


def test_nodes_are_counted_in_any_precision() -> None:
    """Of a graph of 301 nodes, which bfloat16 would round."""
    (path,) = random_graphs(1, 2, channels=[5], edge_channels=[4])
    ends = torch.arange(300)
    path.x, path.edge_index = torch.zeros(301, 1, dtype=torch.int64), torch.stack([ends, ends + 1])
    path.edge_attr = torch.zeros(300, 1, dtype=torch.int64)
    model = enfa.SSWLGNN([5], 4, 1, 1, "gine", edge_channels=[4])
    plan = enfa.make_plan([path], enfa.NodeMarking(), model)
    with torch.autocast("cpu", torch.bfloat16):
        h = model.layers[0](plan, model.encoder(plan), model.edge_encoder(plan))
        assert set(num_nodes(plan, h).value.flatten().tolist()) == {301}
