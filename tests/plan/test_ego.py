"""What is particular to the ego plan; that it is exact is the business of ``tests/test_exact.py``."""

import pytest
import torch
from torch_geometric.data import Data

import enfa
from enfa.graphs import check_graphs
from enfa.plan.ego import ego_plan
from enfa.plan.hops import pivot_hops
from enfa.testing import random_graphs


def _ring(nodes: int) -> Data:
    there = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    return Data(x=torch.zeros(nodes, 1), edge_index=torch.cat([there, there.flip(0)], 1))


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_convs_run_on_the_ego_nets_and_the_graph(layers: int) -> None:
    """On a ring of 20 the (L+1)-hop ego net of one node has 2(L+1)+1 nodes; its two border nodes miss one neighbour."""
    plan = enfa.make_plan([_ring(20)], enfa.NodeMarking(), enfa.Spec(layers), "ego")
    ego = 2 * (layers + 1) + 1
    assert plan.cost().rows == [20 * ego + 20] * layers
    assert plan.cost().edges == [20 * (2 * ego - 2) + 40] * layers
    for i, layer in enumerate(plan.layers, 1):
        assert layer.num_rows == 20 * 20 + 20
        assert int(layer.copies[: 20 * ego].sum()) == 20 * (2 * i + 1)  # Eq. 5: within i hops of the pivot
        assert layer.copies[20 * ego :].tolist() == [20 - (2 * i + 1)] * 20


@pytest.mark.parametrize("policy", [enfa.NodeMarking(), enfa.NodeDeletion(), enfa.EdgeDeletion()], ids=repr)
def test_hops_may_come_from_a_deeper_plan(policy: enfa.Policy) -> None:
    graphs = check_graphs(random_graphs(4, 9, seed=1))
    edits, spec = policy.edits(graphs), enfa.Spec(2)
    deep, own = ego_plan(graphs, edits, spec, pivot_hops(graphs, edits, 6)), ego_plan(graphs, edits, spec)
    for mine, theirs in zip(deep.layers, own.layers):
        for name in ("self_row", "in_ptr", "in_row", "in_edge"):
            assert torch.equal(getattr(mine.links, name), getattr(theirs.links, name))
        assert torch.equal(mine.source, theirs.source) and torch.equal(mine.copies, theirs.copies)
    with pytest.raises(ValueError, match="Expected at most 2 hops, as computed, got 3"):
        ego_plan(graphs, edits, spec, pivot_hops(graphs, edits, 2))
