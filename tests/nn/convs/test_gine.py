import copy
import math

import pytest
import torch
from small_table import check_formula
from torch import nn
from torch.nn.utils import prune

import enfa
from enfa.nn.convs import gine
from enfa.nn.ops import threads
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


def _gradients(cardinalities: list[int], graphs: int = 8) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = enfa.DSGNN([5], 6, 2, 3, "gine", edge_channels=cardinalities).double()
    plan = enfa.make_plan(
        random_graphs(graphs, 24, seed=1, channels=[5], edge_channels=cardinalities), enfa.NodeMarking(), model
    )
    out = model(plan)
    return [out.detach(), *torch.autograd.grad(out.square().sum(), list(model.parameters()))]


@pytest.mark.parametrize("cardinalities", [[4, 3], [8, 3]], ids=["few kinds", "many"])
def test_kernels_compute_what_operators_do(monkeypatch: pytest.MonkeyPatch, cardinalities: list[int]) -> None:
    found = _gradients(cardinalities)
    asked = []
    monkeypatch.setattr(gine, "by_numba", lambda *tensors: asked.append(tensors))
    for value, reference in zip(found, _gradients(cardinalities), strict=True):
        torch.testing.assert_close(value, reference, rtol=1e-10, atol=1e-10)
    assert asked


@pytest.mark.parametrize("cardinalities", [[4, 3], [8, 3]], ids=["few kinds", "many"])
def test_the_same_bits_in_any_number_of_threads(monkeypatch: pytest.MonkeyPatch, cardinalities: list[int]) -> None:
    alone = _gradients(cardinalities, 60)
    monkeypatch.setattr(threads, "WORTH", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    for value, reference in zip(_gradients(cardinalities, 60), alone, strict=True):
        assert torch.equal(value, reference)


@pytest.mark.parametrize("cardinalities", [[4, 3], [8, 3]], ids=["few kinds", "many"])
def test_rows_and_features_in_any_order_of_memory(cardinalities: list[int]) -> None:
    """Column after column, too, as a transpose leaves them: gradients were written into a copy, and lost."""
    model = enfa.DSGNN([5], 6, 2, 3, "gine", edge_channels=cardinalities)
    graphs = random_graphs(4, 12, seed=1, channels=[5], edge_channels=cardinalities)
    plan = enfa.make_plan(graphs, enfa.NodeMarking(), model)
    links, size = plan.tables[1].links, plan.tables[0].num_rows
    assert links is not None
    draw = torch.Generator().manual_seed(0)
    given = [torch.randn(n, 6, dtype=torch.float64, generator=draw) for n in (size, math.prod(cardinalities))]
    found = []
    for order in (lambda t: t.clone(), lambda t: t.T.contiguous().T):
        rows, features = (order(t).requires_grad_() for t in given)
        out = gine.GINE._summed(rows, links, features)
        found.append([out.detach(), *torch.autograd.grad(out.square().sum(), [rows, features])])
    for value, reference in zip(*found, strict=True):
        assert torch.equal(value, reference)


def test_the_edge_linear_is_called() -> None:
    """Hooks of it run, those that make its weight too; and so does another module in its place."""
    torch.manual_seed(0)
    graphs = random_graphs(4, 12, seed=1, channels=3, edge_channels=2)
    model = enfa.DSGNN(3, 6, 2, 2, "gine", edge_channels=2)
    plan, linear = enfa.make_plan(graphs, enfa.NodeMarking(), model), model.layers[0].conv.edge
    pruned = copy.deepcopy(model)
    of_pruned = prune.random_unstructured(pruned.layers[0].conv.edge, "weight", 0.5)
    with torch.no_grad():
        of_pruned.weight_orig.mul_(2)
        linear.weight.mul_(2).mul_(of_pruned.weight_mask)
    expected = model(plan)
    assert torch.equal(pruned(plan), expected)
    with torch.no_grad():
        linear.weight.mul_(2)
        linear.bias.mul_(2)
    expected = model(plan)
    with torch.no_grad():
        linear.weight.div_(2)
        linear.bias.div_(2)
    hook = linear.register_forward_hook(lambda module, given, out: 2 * out)
    assert torch.equal(model(plan), expected)
    hook.remove()
    model.layers[0].conv.edge = nn.Sequential(linear, _Doubled())
    assert torch.equal(model(plan), expected)


class _Doubled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * x
