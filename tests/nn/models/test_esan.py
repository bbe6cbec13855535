import pytest
import torch
import torch.nn.functional as F
from drawn import shaken
from torch import Tensor
from torch_geometric.data import Batch, Data

import enfa
from enfa.testing import assert_same_as_full, degenerate_graphs, random_graphs

EDGES = {"gine": [4, 2], "gine, floats": 2, "gin": None, "graphconv": None}


def _graphs(edges: str, degenerate: bool = True) -> list[Data]:
    channels = EDGES[edges]
    some = random_graphs(4, 7, channels=[5], edge_channels=channels, loops=True, parallel=True)
    return some + list(degenerate_graphs([5], channels).values()) * degenerate


def _model(policy: enfa.Policy, edges: str, **options: object) -> enfa.ESAN:
    torch.manual_seed(2)
    first = ([5], 6, 2, 2, edges.split(",")[0])
    options = {"channels": [5, 3], **options}
    return shaken(enfa.ESAN(*first, edge_channels=EDGES[edges], mark_channels=policy.mark_channels, **options))


@pytest.mark.parametrize("policy", [enfa.NodeMarking(), enfa.NodeDeletion(), enfa.EdgeDeletion(), enfa.EgoNets(1)], ids=str)
@pytest.mark.parametrize("edges", EDGES)
def test_same_as_full(edges: str, policy: enfa.Policy) -> None:
    assert_same_as_full(_model(policy, edges), policy, _graphs(edges), steps=1)


@pytest.mark.parametrize(
    "options",
    [
        {"invariant": True, "channels": [4, 4], "jk": "concat"},
        {"readout": "mean", "jk": "concat", "dropout": 0.3},
        {"readout": "max", "norm": "layer", "bag": "sum", "residual": True},
    ],
    ids=str,
)
def test_options_are_the_same_as_full(options: dict) -> None:
    policy = enfa.NodeMarking()
    assert_same_as_full(_model(policy, "gine", **options), policy, _graphs("gine"), steps=0)


def _by_hand(model: enfa.ESAN, graph: Data) -> Tensor:
    """The bag written out: a copy for every node, on plain tensors."""
    n = graph.num_nodes
    hot = torch.cat([torch.eye(4)[graph.edge_attr[:, 0]], torch.eye(2)[graph.edge_attr[:, 1]]], 1).double()
    copies = [Data(x=graph.x, mark=mark[:, None], edge_index=graph.edge_index, hot=hot) for mark in torch.eye(n).double()]
    bag = Batch.from_data_list(copies)
    source, target = bag.edge_index
    h = torch.cat([model.encoder.embed(bag.x), bag.mark], 1)
    tables = [h]
    for number, layer in enumerate(model.layers):
        messages = (h[source] + bag.hot @ layer.conv.edge.weight.T).relu()
        h = layer.conv.update((1 + layer.conv.eps) * h + torch.zeros_like(h).index_add(0, target, messages))
        h = layer.norm(h)
        h = h.relu() if number + 1 < len(model.layers) else h
        tables.append(h)
    h = torch.cat(tables, 1).view(n, n, -1).mean(1)
    for own, of_bag in zip(model.subgraph_mlp["own"], model.subgraph_mlp["bag"]):
        h = F.elu(own(h) + of_bag(h.mean(0)))
    return model.head(h.mean(0))


def test_is_what_the_authors_compute() -> None:
    """Input in the jumping knowledge, no ReLU after the last layer, an MLP twice as wide, DeepSets layers over the bag."""
    policy, graphs = enfa.NodeMarking(), _graphs("gine", degenerate=False)
    model = _model(policy, "gine", jk="concat", readout="mean").double().eval()
    assert model.layers[1].conv.update[0].out_features == 2 * 6 and model.layers[1].conv.eps.requires_grad
    expected = torch.stack([_by_hand(model, graph) for graph in graphs])
    torch.testing.assert_close(model(enfa.make_plan(graphs, policy, model)), expected, rtol=1e-10, atol=1e-12)


def test_a_subgraph_without_nodes_hears_nothing_of_its_bag() -> None:
    graphs = [Data(x=torch.ones(1, 1).long(), edge_index=torch.empty(2, 0).long())]
    policy = enfa.NodeDeletion()
    model = _model(policy, "gin", norm=None).double()
    h = torch.zeros(1, 6).double()
    for own in model.subgraph_mlp["own"]:
        h = F.elu(own(h))
    torch.testing.assert_close(model(enfa.make_plan(graphs, policy, model)), model.head(h))
    assert_same_as_full(model, policy, graphs, steps=0)


def test_rows_are_shared_between_graphs_where_nothing_tells_graphs_apart() -> None:
    policy, graphs = enfa.NodeMarking(), _graphs("gin")
    shares = [enfa.trace(_model(policy, "gin", channels=[4], invariant=one), graphs, policy).share for one in (True, False)]
    assert shares == ["dataset", "graph"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"conv": "gcn"}, "Expected conv to be one of gin, gine, graphconv, got 'gcn'"),
        ({"readout": "root"}, "Expected readout to be one of sum, mean, max, got 'root'"),
        ({"jk": "sum"}, "Expected jk to be one of last, concat, got 'sum'"),
        ({"channels": []}, "Expected a list of at least one channel width, got channels="),
        ({"channels": (), "invariant": True}, "Expected a list of at least one channel width, got channels="),
        ({"channels": 32}, "Expected a list of at least one channel width, got channels=32"),
        ({"channels": [0]}, "Expected channels"),
        ({"channels": [3, 4], "invariant": True}, "Expected equal channels, because it is invariant"),
    ],
    ids=str,
)
def test_what_it_is_not(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}".replace("[", r"\[")):
        enfa.ESAN(3, 4, 2, 2, **options)
