"""Large graphs and hubs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from canonical import check_rows
from cases import POLICIES
from torch_geometric.data import Data

import enfa
from enfa.batch import PackedLoader
from enfa.graphs import check_graphs
from enfa.plan import hubs
from enfa.plan.kernels.walk import HUB
from enfa.plan.steps import builder
from enfa.testing import assert_same_as_full, large_graph

torch.set_num_threads(1)


def rooted(kinds: int = 4, **options) -> enfa.DSGNN:
    torch.manual_seed(0)
    return enfa.DSGNN([kinds], 8, 3, 2, norm="layer", readout="root", **options)


@pytest.mark.parametrize("conv", ["gin", "gcn", "graphconv"])
def test_exact_on_a_larger_graph(conv):
    graph = large_graph(300, 6, window=20, seed=1)
    assert_same_as_full(rooted(conv=conv), enfa.NodeMarking(), [graph])


HUBS = {
    **POLICIES,
    "ego nets": enfa.EgoNets(1),
    "distances": enfa.NodeMarking(distances=1),
    "edge marking": enfa.EdgeMarking(),
    "reconstruction": enfa.Reconstruction(-3, max_subgraphs=40),
}


def with_hubs(kinds: int = 4, nodes: int = 120, hub: int = 100) -> Data:
    """Node 0 has about 100 edges, node 1 about 80: more than 64, from where keys are told by what changes in them."""
    graph = large_graph(nodes, 2, kinds=kinds, window=30, hub=hub, seed=2)
    other = torch.arange(2, 82)
    more = torch.stack([torch.ones_like(other), other])
    graph.edge_index = torch.unique(torch.cat([graph.edge_index, more, more.flip(0)], 1), dim=1)
    assert int((torch.bincount(graph.edge_index[1]) > HUB).sum()) == 2
    return graph


@pytest.mark.parametrize("kinds", [2, 4])
@pytest.mark.parametrize("policy", HUBS)
def test_exact_with_hubs(policy, kinds):
    marks = HUBS[policy].edge_mark_channels
    conv = {"conv": "gine", "edge_channels": 0, "edge_mark_channels": marks} if marks else {}
    model = enfa.DSGNN([kinds], 6, 2, 3, mark_channels=HUBS[policy].mark_channels, **conv)
    assert_same_as_full(model, HUBS[policy], [with_hubs(kinds)])


@pytest.mark.parametrize("policy", [p for p in HUBS if HUBS[p].edits(check_graphs([with_hubs()])).root is not None])
def test_exact_with_hubs_at_the_roots(policy):
    marks = HUBS[policy].edge_mark_channels
    conv = {"conv": "gine", "edge_channels": 0, "edge_mark_channels": marks} if marks else {}
    torch.manual_seed(0)
    model = enfa.DSGNN(
        [4], 6, 2, 3, mark_channels=HUBS[policy].mark_channels, norm="layer", readout="root", **conv
    )
    assert model.spec.pruned
    assert_same_as_full(model, HUBS[policy], [with_hubs()])


@pytest.mark.parametrize("policy", POLICIES)
def test_hubs_share_all_they_can(policy):
    """As many rows as brute force finds: telling keys by what changes in them must not keep equal ones apart."""
    graphs = [with_hubs(1, 84, 80), with_hubs(2, 84, 80)]
    for spec in (enfa.Spec(2), enfa.Spec(2, degrees=True)):
        check_rows(enfa.make_plan(graphs, POLICIES[policy], spec), graphs, policy)


def test_changes_around_hubs_are_few():
    """Of the subgraphs around a hub whose neighbours are of two kinds, those that mark a neighbour change it in two ways."""
    star = Data(x=(torch.arange(101) % 2)[:, None], edge_index=torch.stack([torch.arange(1, 101), torch.zeros(100).long()]))
    graphs = check_graphs([star])
    edits = enfa.NodeMarking().edits(graphs)
    base, marked = graphs.node_kind.astype(np.int32), graphs.node_kind.astype(np.int32) + 2
    ptr, node, change, row, _ = hubs.changes(
        graphs, edits, edits.root, -1, base, np.zeros(100, np.int32), np.arange(102), np.arange(101, dtype=np.int32), marked
    )
    assert np.diff(ptr).tolist() == [0] + [1] * 100  # marking the hub changes none of its messages
    assert set(node[:100]) == {0} and len(row) == 2
    assert (change[:100] == np.arange(100) % 2).all()


def test_cost_is_linear():
    costs = {}
    for nodes in (2000, 20000):
        graph = large_graph(nodes, 6, window=100)
        plan = enfa.make_plan([graph], enfa.NodeMarking(), rooted().spec)
        costs[nodes] = plan.cost()
        assert plan.readout.root_row is not None and len(plan.readout.root_row) == nodes
        assert plan.num_pairs == nodes**2
    assert costs[20000].bytes < 11 * costs[2000].bytes
    assert costs[20000].rows[1] <= 20000


def test_trains_on_a_large_graph():
    graph = large_graph(20000, 6)
    model = rooted()
    plan = enfa.make_plan([graph], enfa.NodeMarking(), model.spec)
    out = model(plan)
    out.square().mean().backward()
    assert out.shape == (20000, 3)
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("kind", ["full", "ego"])
def test_the_conventional_bag_is_refused(kind):
    graph = large_graph(50000, 2)
    with pytest.raises(ValueError, match=r"pairs to write out, got 2500000000: use the distinct plan"):
        enfa.make_plan([graph], enfa.NodeMarking(), rooted().spec, kind)


@pytest.mark.parametrize("limit", ["STORED", "LOOKED_AT"])
def test_hubs_are_bounded(limit, monkeypatch):
    monkeypatch.setattr(hubs, limit, 20000)
    graph = large_graph(1000, 2, kinds=1000, hub=500)
    with pytest.raises(ValueError, match=r"node 0 of graph 0 has 50\d incoming edges, .* \(Subsample\)"):
        enfa.make_plan([graph], enfa.NodeMarking(), rooted(1000).spec)


def test_hubs_are_refused_before_anything_is_stored(monkeypatch):
    """The hub has 5,000 neighbours, most of them different: it alone takes 17 million messages, all else 30,000."""
    graph = large_graph(6000, 2, kinds=6000, hub=5000)
    model = rooted(6000)
    monkeypatch.setattr(hubs, "STORED", 2**24)
    with monkeypatch.context() as patch, pytest.raises(ValueError, match=r"got 17\d{6}, which take 0\.1 GiB as keys alone"):
        patch.setattr(builder, "walk", None)
        enfa.make_plan([graph], enfa.NodeMarking(), model.spec)
    few = large_graph(6000, 2, kinds=2, hub=5000)
    plan = enfa.make_plan([few], enfa.NodeMarking(), model.spec)
    assert plan.cost().edges[0] < 2**20


@pytest.mark.parametrize("readout", ["sum", "root"])
def test_affected_pairs_are_bounded(readout, monkeypatch):
    """Next to a hub an edit reaches all of its neighbours in two layers: 500 squared pairs, though of few different rows."""
    star = Data(x=torch.zeros(501, 1).long(), edge_index=torch.stack([torch.zeros(500).long(), torch.arange(1, 501)]))
    star.edge_index = torch.cat([star.edge_index, star.edge_index.flip(0)], 1)
    spec = enfa.Spec(4 if readout == "root" else 2, output="root" if readout == "root" else "graph", pruned=readout == "root")
    assert enfa.make_plan([star], enfa.NodeMarking(), spec).cost().rows[-1] < 10
    monkeypatch.setattr(hubs, "STORED", 2**17)
    with pytest.raises(ValueError, match=r"pairs that an edit affects .* node 0 of graph 0 has 500 incoming edges"):
        enfa.make_plan([star], enfa.NodeMarking(), spec)


@pytest.mark.parametrize("nodes", [50_000, 70_000])  # beyond 2^31 pairs, and beyond 2^32
@pytest.mark.parametrize("context", [None, "dss"])
def test_a_row_may_stand_for_more_pairs_than_int32_counts(nodes, context):
    """In a cycle of equal nodes nearly all (subgraph, node) pairs are one row."""
    here = torch.arange(nodes)
    ends = torch.stack([here, (here + 1) % nodes])
    cycle = Data(x=torch.ones(nodes, 1), edge_index=torch.cat([ends, ends.flip(0)], 1))
    torch.manual_seed(0)
    model = enfa.DSGNN(1, 4, 2, 2) if context is None else enfa.DSSGNN(1, 4, 2, 2, context=context)
    plan = enfa.make_plan([cycle], enfa.NodeMarking(), model.spec)
    assert all(int(layer.copies.sum()) == nodes**2 and int(layer.copies.min()) > 0 for layer in plan.layers)
    assert model.double().train()(plan).isfinite().all()
    compiled = enfa.compile([cycle, cycle], enfa.NodeMarking(), model.spec, progress=False)
    for batch in PackedLoader(compiled, model.needs, 1):
        assert all(int(layer.copies.sum()) == nodes**2 for layer in batch.plan.layers)


def test_generator():
    graph = large_graph(1000, 10, window=50, seed=3)
    again, other = large_graph(1000, 10, window=50, seed=3), large_graph(1000, 10, window=50, seed=4)
    assert torch.equal(graph.edge_index, again.edge_index) and not torch.equal(graph.edge_index, other.edge_index)
    degree = torch.bincount(graph.edge_index[1], minlength=1000)
    assert int(degree.min()) >= 1 and int(degree.max()) == 10
    with pytest.raises(ValueError, match="even degree"):
        large_graph(10, 3)
