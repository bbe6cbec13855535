"""The plan of some graphs, cut out of a compiled dataset, is the plan of these graphs."""

from collections import Counter

import numpy as np
import pytest
from canonical import Numbers, check_rows, of_plan
from cases import POLICIES
from torch_geometric.data import Data

import enfa
from enfa.graphs import check_graphs
from enfa.plan.distinct import distinct_rows_of
from enfa.plan.make import edits_of, sources_of
from enfa.plan.slice import Slicer
from enfa.testing import degenerate_graphs, random_graphs

SPECS = [
    enfa.Spec(3),
    enfa.Spec(2, degrees=True, edge_attr=True),
    enfa.Spec(2, "input", True, degrees=True),
    enfa.Spec(2, "output", True, edge_attr=True, share="graph"),
    enfa.Spec(2, "output", share="graph"),
]


def _slicer(graphs: list[Data], policy: enfa.Policy, spec: enfa.Spec) -> Slicer:
    checked = check_graphs(graphs)
    edits = edits_of(checked, policy, spec)
    sources, start = sources_of(checked, edits, spec)
    return Slicer(distinct_rows_of(checked, edits, spec, start), sources)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_a_slice_is_the_plan_of_the_subset(spec: enfa.Spec, policy: str) -> None:
    graphs = random_graphs(6, 7, seed=3, channels=[2], edge_channels=[2], loops=True, parallel=True)
    graphs += degenerate_graphs([2], [2]).values()
    slicer = _slicer(graphs, POLICIES[policy], spec)
    for chosen in ([3], [5, 0, 2], [8, 14, 6, 7], list(range(15))[::-1]):
        part = [graphs[g] for g in chosen]
        found, expected = slicer.plan(np.array(chosen)), enfa.make_plan(part, POLICIES[policy], spec)
        found.check()
        check_rows(found, part, policy)
        assert found.cost().rows == expected.cost().rows and found.cost().edges == expected.cost().edges
        assert found.num_graphs == len(chosen) and found.num_pairs == expected.num_pairs
        assert found.graph_ids is not None and found.graph_ids.tolist() == chosen
        # subgraph by subgraph, in the same order
        number = Numbers()
        mine, theirs = of_plan(number, found)[0], of_plan(number, expected)[0]
        assert [[+b for b in bags] for bags in mine.bags] == [[+b for b in bags] for bags in theirs.bags]
        for name in ("sub_graph", "sub_size", "base_graph"):
            assert getattr(found.readout, name).tolist() == getattr(expected.readout, name).tolist()


def test_a_slicer_forgets_what_it_has_cut() -> None:
    """Also after a cut that failed."""
    graphs = random_graphs(5, 7, seed=3, channels=[2])
    slicer = _slicer(graphs, enfa.NodeMarking(), enfa.Spec(2))
    first = slicer.plan(np.array([1, 3]))
    with pytest.raises(IndexError):
        slicer.plan(np.array([1, 77]))
    slicer.plan(np.array([0, 1, 2, 3, 4]))
    again = slicer.plan(np.array([1, 3]))
    for mine, theirs in zip(first.layers, again.layers):
        assert mine.links.in_row.tolist() == theirs.links.in_row.tolist()
        assert mine.copies.tolist() == theirs.copies.tolist()


def test_an_empty_slice() -> None:
    plan = _slicer(random_graphs(2, 4), enfa.NodeMarking(), enfa.Spec(2)).plan(np.array([], np.int64)).check()
    assert plan.cost().rows == [0, 0] and plan.num_graphs == 0 and Counter(plan.readout.sub_delta.tolist()) == {}
