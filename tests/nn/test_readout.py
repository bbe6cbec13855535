"""Pools of every plan against pools over subgraphs that are written out."""

import pytest
import torch
from canonical import Numbers, of_plan
from cases import POLICIES

import enfa
from enfa.nn.readout import pool_bag, pool_nodes
from enfa.plan.derive import readouts
from enfa.testing import degenerate_graphs, random_graphs


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
@pytest.mark.parametrize("kind", ["full", "ego", "distinct"])
@pytest.mark.parametrize("policy", POLICIES)
def test_pools_of_every_table(policy: str, kind: str, how: str) -> None:
    """Every row gets a random vector by what it is computed from, so all plans pool the same numbers."""
    graphs = random_graphs(3, 7, seed=1, channels=[2]) + list(degenerate_graphs([2]).values())
    plan = enfa.make_plan(graphs, POLICIES[policy], enfa.Spec(3), kind)
    number = Numbers()
    found, tables = of_plan(number, plan)
    torch.manual_seed(0)
    value = torch.randn(len(number.of), 4, dtype=torch.float64) - 1.0
    value.requires_grad_()
    for rows, readout, bags in zip(tables["table"], readouts(plan), found.bags):
        pooled = pool_nodes([value[rows]], [readout], plan.num_graphs, how)
        for one, bag in zip(pooled, bags, strict=True):
            nodes = value[list((+bag).elements())]
            expected = torch.zeros(4, dtype=torch.float64)  # of an empty subgraph
            if len(nodes):
                expected = nodes.sum(0) if how == "sum" else nodes.mean(0) if how == "mean" else nodes.amax(0)
            assert torch.allclose(one, expected, atol=1e-12)
    assert [int(n) for n in plan.readout.sub_size] == [sum((+bag).values()) for bag in found.bags[-1]]


def test_readouts_of_lower_tables_list_no_rows_that_cancel() -> None:
    plan = enfa.make_plan(random_graphs(4, 9, seed=2), enfa.NodeMarking(), enfa.Spec(3))
    lengths = [len(readout.delta.row) for readout in readouts(plan)]
    assert lengths == sorted(lengths) and lengths[0] < lengths[-1]
    assert all(bool((readout.delta.count != 0).all()) for readout in readouts(plan))
    assert readouts(plan) is readouts(plan)


@pytest.mark.parametrize("how", ["sum", "mean"])
def test_bags(how: str) -> None:
    graphs = list(degenerate_graphs().values())
    plan = enfa.make_plan(graphs, enfa.NodeMarking(), enfa.Spec(1))
    of_sub = torch.randn(len(plan.readout.sub_graph), 3, dtype=torch.float64, requires_grad=True)
    found = pool_bag(of_sub, plan.readout, plan.num_graphs, how)
    for g in range(len(graphs)):
        mine = of_sub[plan.readout.sub_graph == g]
        assert torch.allclose(found[g], mine.sum(0) if how == "sum" else mine.mean(0))
    torch.autograd.gradcheck(lambda x: pool_bag(x, plan.readout, plan.num_graphs, how), of_sub)


def test_unknown_names_list_the_known_ones() -> None:
    plan = enfa.make_plan(random_graphs(2), enfa.NodeMarking(), enfa.Spec(1))
    with pytest.raises(ValueError, match=r"Expected readout to be one of sum, mean, max, got 'min'"):
        pool_nodes([torch.zeros(plan.layers[0].num_rows, 1)], [plan.readout], 2, "min")
    with pytest.raises(ValueError, match=r"Expected bag to be one of mean, sum, got 'max'"):
        pool_bag(torch.zeros(len(plan.readout.sub_graph), 1), plan.readout, 2, "max")
