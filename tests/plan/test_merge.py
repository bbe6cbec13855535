"""Rows compiled in two parts and joined are the rows compiled at once, whatever their order."""

import numpy as np
import pytest
from canonical import check_rows
from cases import POLICIES

import enfa
from enfa.graphs import check_graphs
from enfa.plan.distinct import distinct_rows_of
from enfa.plan.make import edits_of, sources_of
from enfa.plan.merge import merge_rows
from enfa.plan.slice import Slicer
from enfa.testing import degenerate_graphs, random_graphs


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "spec",
    [
        enfa.Spec(3),
        enfa.Spec(2, degrees=True, edge_attr=True, share="graph"),
        enfa.Spec(2, "input", True, degrees=True),
        enfa.Spec(2, "output"),
        enfa.Spec(2, "output", True, edge_attr=True),
    ],
    ids=repr,
)
def test_in_parts_as_at_once(spec: enfa.Spec, policy: str) -> None:
    graphs = random_graphs(5, 6, seed=3, channels=[2], edge_channels=[2], loops=True)
    graphs += degenerate_graphs([2], [2]).values()
    checked = check_graphs(graphs)
    edits = edits_of(checked, POLICIES[policy], spec)
    sources, kind = sources_of(checked, edits, spec)
    parts = np.split(np.arange(len(graphs)), [4, 9])
    joined, *rest = (
        distinct_rows_of(checked.subset(part), edits.subset(checked, part), spec,
                         kind[checked.node_ptr[part[0]] : checked.node_ptr[part[-1] + 1]])
        for part in parts
    )  # fmt: skip
    for new in rest:
        merge_rows(joined, new, spec.context == "input")
    once = distinct_rows_of(checked, edits, spec, kind)
    assert len(joined.start) == len(once.start) and len(joined.deltas) == len(once.deltas)
    for mine, theirs in zip(joined.layers, once.layers):
        assert {n: len(t) for n, t in mine.tables.items()} == {n: len(t) for n, t in theirs.tables.items()}
    assert joined.affected == once.affected
    plan = Slicer(joined, sources).plan(np.arange(len(graphs))).check()
    check_rows(plan, graphs, policy)
