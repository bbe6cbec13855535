import pytest
from programs import layers

import enfa
from enfa.testing import random_graphs


@pytest.mark.parametrize("policy", [enfa.NodeMarking(), enfa.EdgeDeletion()], ids=repr)
def test_rows_edges_and_bytes(policy: enfa.Policy) -> None:
    graphs = random_graphs(5, 8, seed=1)
    cost = {kind: enfa.make_plan(graphs, policy, layers(3), kind).cost() for kind in ("full", "ego", "distinct")}
    subs = [g.num_nodes if isinstance(policy, enfa.NodeMarking) else max(g.num_edges // 2, 1) for g in graphs]
    assert cost["full"].rows == [sum(s * g.num_nodes for s, g in zip(subs, graphs))] * 3
    gone = 0 if isinstance(policy, enfa.NodeMarking) else 2
    assert cost["full"].edges == [sum(s * max(g.num_edges - gone, 0) for s, g in zip(subs, graphs))] * 3
    assert all(d <= f for d, f in zip(cost["distinct"].rows, cost["full"].rows))
    assert cost["distinct"].rows == sorted(cost["distinct"].rows)


def test_bytes_are_those_of_the_arrays() -> None:
    """Every array once, though the layers of a full plan share theirs."""
    graphs = random_graphs(3, 6, seed=1)
    one, three = (enfa.make_plan(graphs, enfa.NodeMarking(), layers(n), "full") for n in (1, 3))
    assert one.cost().bytes == three.cost().bytes
    arrays = [one.x_rows, one.feature, one.marked, one.mark_rows, one.edge_mark_rows, one.tables[1].copies]
    arrays += one.tables[1].links.tensors()
    assert one.cost().bytes > sum(t.numel() * t.element_size() for t in arrays)
