"""Large graphs and hubs."""

from __future__ import annotations

import pytest
import torch

import enfa
from enfa.plan import hubs
from enfa.testing import assert_same_as_full, large_graph

torch.set_num_threads(1)


def rooted(kinds: int = 4, **options) -> enfa.DSGNN:
    torch.manual_seed(0)
    return enfa.DSGNN([kinds], 8, 3, 2, norm="layer", readout="root", **options)


@pytest.mark.parametrize("conv", ["gin", "gcn", "graphconv"])
def test_exact_on_a_larger_graph(conv):
    graph = large_graph(300, 6, window=20, seed=1)
    assert_same_as_full(rooted(conv=conv), enfa.NodeMarking(), [graph])


@pytest.mark.parametrize("policy", [enfa.NodeMarking(), enfa.NodeDeletion(), enfa.EdgeDeletion(), enfa.EgoNets(1)])
def test_exact_with_a_hub(policy):
    """A node of more than 64 edges, whose keys are sorted in another way; many of its neighbours change at once."""
    graph = large_graph(120, 2, window=30, hub=100, seed=2)
    assert int(torch.bincount(graph.edge_index[1]).max()) >= 100
    assert_same_as_full(enfa.DSGNN([4], 6, 2, 3), policy, [graph])


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
    with pytest.raises(ValueError, match=r"node 0 of graph 0 has 50\d incoming edges. Leave out such nodes"):
        enfa.make_plan([graph], enfa.NodeMarking(), rooted(1000).spec)


def test_generator():
    graph = large_graph(1000, 10, window=50, seed=3)
    again, other = large_graph(1000, 10, window=50, seed=3), large_graph(1000, 10, window=50, seed=4)
    assert torch.equal(graph.edge_index, again.edge_index) and not torch.equal(graph.edge_index, other.edge_index)
    degree = torch.bincount(graph.edge_index[1], minlength=1000)
    assert int(degree.min()) >= 1 and int(degree.max()) == 10
    with pytest.raises(ValueError, match="even degree"):
        large_graph(10, 3)
