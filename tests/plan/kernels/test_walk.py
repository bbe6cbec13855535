"""The walk makes room when tables are too small, and stops nowhere else."""

import numpy as np
import pytest
from cases import POLICIES

import enfa
from enfa.graphs import check_graphs
from enfa.plan.distinct import distinct_rows_of
from enfa.plan.intern import KeyTable
from enfa.plan.steps.builder import start_kinds
from enfa.testing import random_graphs


@pytest.mark.parametrize("context", [None, "input", "output"])
@pytest.mark.parametrize("policy", POLICIES)
def test_tables_that_start_small_end_the_same(
    policy: str, context: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs = check_graphs(random_graphs(12, 9, seed=5, channels=[3], loops=True, parallel=True))
    spec = enfa.Spec(3, context, degrees=context is None)
    edits, kind = POLICIES[policy].edits(graphs), start_kinds(graphs, spec.share)[0]
    expected = distinct_rows_of(graphs, edits, spec, kind)
    monkeypatch.setattr(KeyTable.__init__, "__defaults__", (1, 1))  # room for one row and one item
    found = distinct_rows_of(graphs, edits, spec, kind)
    tables = [(found.start, expected.start), (found.deltas, expected.deltas)]
    for mine, theirs in zip(found.layers, expected.layers):
        tables += [(table, theirs.tables[name]) for name, table in mine.tables.items()]
    for table, other in tables:
        assert np.array_equal(table.own, other.own)
        assert np.array_equal(table.item_ptr, other.item_ptr)
        assert np.array_equal(table.a, other.a) and np.array_equal(table.b, other.b)
    assert np.array_equal(found.base_ptr, expected.base_ptr) and np.array_equal(found.base_row, expected.base_row)
    assert np.array_equal(found.sub_delta, expected.sub_delta)
    assert found.affected == expected.affected
