"""Rows numbered in the order of use are the same rows."""

import numpy as np
import pytest
from canonical import Numbers, check_rows, of_plan
from cases import POLICIES

import enfa
from enfa.graphs import check_graphs
from enfa.plan.arrange import arrange
from enfa.plan.distinct import distinct_rows_of
from enfa.plan.make import edits_of, sources_of
from enfa.plan.merge import merge_rows
from enfa.plan.slice import Slicer
from enfa.testing import degenerate_graphs, random_graphs

SPECS = [
    enfa.Spec(3),
    enfa.Spec(2, "input", True, degrees=True),
    enfa.Spec(2, "output", True, edge_attr=True, share="graph"),
    enfa.Spec(2, "output", share="graph"),
    enfa.Spec(2, output="node"),
]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_slices_stay_the_same_and_keys_are_found_again(spec: enfa.Spec, policy: str) -> None:
    graphs = random_graphs(6, 7, seed=3, channels=[2], edge_channels=[2], loops=True, parallel=True)
    graphs += degenerate_graphs([2], [2]).values()
    checked = check_graphs(graphs)
    edits = edits_of(checked, POLICIES[policy], spec)
    sources, start = sources_of(checked, edits, spec)
    rows, again = (distinct_rows_of(checked, edits, spec, start) for _ in range(2))
    arrange(rows, edits.sub_ptr, spec.context == "input")
    every = Slicer(rows, sources).plan(np.arange(15))
    assert [len(layer.rows) for layer in rows.layers] == every.cost().rows  # what counts nothing is gone
    for chosen in ([5, 0, 2], list(range(15))):
        found = Slicer(rows, sources).plan(np.array(chosen)).check()
        check_rows(found, [graphs[g] for g in chosen], policy)
        expected = Slicer(again, sources).plan(np.array(chosen))
        assert found.cost() == expected.cost()
        number = Numbers()
        mine, theirs = of_plan(number, found)[0], of_plan(number, expected)[0]
        assert [[+b for b in bags] for bags in mine.bags] == [[+b for b in bags] for bags in theirs.bags]
    for layer in rows.layers:  # in the order of use: what the first row needs is met first
        assert len(layer.rows) == 0 or layer.rows.own[0] == 0
    # all of its keys are known
    sizes = [table.size.tolist() for layer in rows.layers for table in layer.tables.values()]
    arrange(again, edits.sub_ptr, spec.context == "input")
    merge_rows(rows, again, spec.context == "input")
    assert [table.size.tolist() for layer in rows.layers for table in layer.tables.values()] == sizes


def test_roots_keep_their_rows() -> None:
    graphs, spec = random_graphs(5, 7, seed=3, channels=[2]), enfa.Spec(3, output="root", pruned=True)
    checked = check_graphs(graphs)
    edits = edits_of(checked, enfa.NodeMarking(), spec)
    sources, start = sources_of(checked, edits, spec)
    rows, again = (distinct_rows_of(checked, edits, spec, start) for _ in range(2))
    arrange(rows, edits.sub_ptr, False)
    found, expected = (Slicer(r, sources).plan(np.arange(5)).check() for r in (rows, again))
    torch_rows = [p.readout.root_row.flatten() for p in (found, expected)]
    for i in reversed(range(3)):  # the same copies and numbers of messages all the way down
        for name in ("in_ptr",):
            lengths = [getattr(p.layers[i].links, name).diff()[r] for p, r in zip((found, expected), torch_rows)]
            assert lengths[0].tolist() == lengths[1].tolist()
        copies = [p.layers[i].copies[r] for p, r in zip((found, expected), torch_rows)]
        assert copies[0].tolist() == copies[1].tolist()
        torch_rows = [p.layers[i].previous[r] for p, r in zip((found, expected), torch_rows)]
    assert all(
        f.tolist() == e.tolist()
        for f, e in zip(*[(p.x[p.feature[r]], p.mark[r]) for p, r in zip((found, expected), torch_rows)])
    )
