"""Identities of rows: the same in every plan, and different for rows that differ."""

import pytest
import torch
from cases import EVERY
from drawn import OWN, Drawn
from step_rows import Numbers, of_plan

import enfa
from enfa.nn.bag import make_plan, trace
from enfa.plan.derived.identity import _over_links_there, mix64, over_links, step_identities
from enfa.testing import degenerate_graphs, random_graphs


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", EVERY)
def test_one_row_one_identity_in_every_plan(name: str, seed: int) -> None:
    """Rows are told apart by brute force; over all plans the map from rows to identities is one to one."""
    graphs = random_graphs(3, 6, seed=3, channels=2, edge_channels=[2], loops=False, parallel=True)
    graphs += degenerate_graphs(2, [2]).values()
    program = trace(Drawn(seed, EVERY[name], 2, 4, name in OWN, name in OWN), graphs, EVERY[name])
    number, forth, back = Numbers(), {}, {}
    for kind in ("full", "ego", "distinct"):
        plan = make_plan(graphs, EVERY[name], program, kind)
        for n, rows in enumerate(of_plan(number, plan)):
            identities = step_identities(plan, n).tolist()
            assert len(rows) == len(identities)
            for row, identity in zip(rows, identities):
                assert forth.setdefault((n, row), identity) == identity
                assert back.setdefault((n, identity), row) == row
    assert len(forth) > 50


def test_is_computed_once() -> None:
    plan = make_plan(random_graphs(2), enfa.NodeMarking(), enfa.DSGNN(3, 4, 2, 2))
    assert step_identities(plan, 2) is step_identities(plan, 2)


def test_the_kernel_hashes_as_pytorch_does() -> None:
    """Masks of dropout must not depend on the device."""
    graphs = random_graphs(3, 6, seed=3, channels=2, loops=True)
    plan = make_plan(graphs, enfa.NodeMarking(), enfa.DSGNN(2, 4, 2, 2))
    before, edge = mix64(torch.arange(len(plan.feature)), 99), mix64(torch.arange(len(plan.edge_mark_rows)))
    links = plan.tables[1].links
    assert torch.equal(over_links(before, links, edge), _over_links_there(before, links, edge))
