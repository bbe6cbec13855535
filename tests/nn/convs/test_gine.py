import pytest
import torch
from small_table import check_formula

import enfa
from enfa.plan.derived.prepare import lean, prepare
from enfa.testing import random_graphs


def test_formula() -> None:
    """MLP(x_v + sum of relu(x_u + W e_uv))."""
    check_formula(
        "gine",
        lambda conv, x, edge, own, incoming: conv.update(
            x[own] + sum((torch.relu(x[r] + conv.edge(edge[e])) for r, e in incoming), torch.zeros(3))
        ),
    )


@pytest.mark.parametrize(("cardinalities", "by_kind"), [([4, 3], False), ([8, 3], True)])
def test_from_lists_the_same(cardinalities: list[int], by_kind: bool) -> None:
    """Of few kinds of edges no lists are made: messages know their kind."""
    torch.manual_seed(0)
    model = enfa.DSGNN([5], 6, 2, 3, "gine", edge_channels=cardinalities).double()
    graphs = random_graphs(8, 24, seed=1, channels=[5], edge_channels=cardinalities)
    plan = enfa.make_plan(graphs, enfa.NodeMarking(), model)
    plain = model(plan)
    expected = [plain, *torch.autograd.grad(plain.square().sum(), list(model.parameters()))]
    needs = plan.program.needs
    listed = lean(prepare(plan, needs), needs)
    links = [table.links for table in listed.tables if table.links is not None]
    assert len(links) == 3 and all(part.in_row.is_meta for part in links)
    assert all((part.cache.get("kinds") is not None) == by_kind for part in links)
    out = model(listed)
    found = [out, *torch.autograd.grad(out.square().sum(), list(model.parameters()))]
    for value, reference in zip(found, expected, strict=True):
        torch.testing.assert_close(value, reference, rtol=1e-9, atol=1e-9)
