"""Identities of rows: the same in every plan, and different for rows that differ."""

import pytest
import torch
from canonical import Numbers, of_plan
from cases import POLICIES

import enfa
from enfa.plan.identity import _over_links_there, mix64, over_links, row_identities
from enfa.testing import degenerate_graphs, random_graphs

SPECS = [
    enfa.Spec(3),
    enfa.Spec(2, degrees=True, edge_attr=True, share="graph"),
    enfa.Spec(2, "input", True, degrees=True),
    enfa.Spec(2, "output", True, edge_attr=True),
    enfa.Spec(2, "output", share="graph"),
]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_one_row_one_identity_in_every_plan(spec: enfa.Spec, policy: str) -> None:
    """Rows are told apart by brute force; over all plans the map from rows to identities is one to one."""
    graphs = random_graphs(3, 6, seed=3, channels=2, edge_channels=[2], loops=True, parallel=True)
    graphs += degenerate_graphs(2, [2]).values()
    number, forth, back = Numbers(), {}, {}
    for kind in ("full", "ego", "distinct"):
        plan = enfa.make_plan(graphs, POLICIES[policy], spec, kind)
        _, tables = of_plan(number, plan)
        for i, (conv, seen, table) in enumerate(row_identities(plan)):
            named = {"conv": conv, "table": table, "encoded": seen}
            for name, identities in named.items():
                rows = tables[name][i] if tables[name] else []
                assert len(rows) == len(identities)
                for row, identity in zip(rows, identities.tolist()):
                    # a row without a context is in the table what it is after the conv
                    key = (i, "table" if name == "conv" and spec.context is None else name)
                    assert forth.setdefault((key, row), identity) == identity
                    assert back.setdefault((key, identity), row) == row
    assert len(forth) > 50


def test_is_computed_once() -> None:
    plan = enfa.make_plan(random_graphs(2), enfa.NodeMarking(), enfa.Spec(2))
    assert row_identities(plan) is row_identities(plan)


def test_the_kernel_hashes_as_pytorch_does() -> None:
    """Masks of dropout must not depend on the device."""
    plan = enfa.make_plan(random_graphs(3, 6, seed=3, channels=2, loops=True), enfa.NodeMarking(), enfa.Spec(2))
    before = mix64(torch.arange(len(plan.feature)), 99)
    edge = mix64(torch.arange(len(plan.edge_mark)))
    links = plan.layers[0].links
    assert torch.equal(over_links(before, links, edge), _over_links_there(before, links, edge))
