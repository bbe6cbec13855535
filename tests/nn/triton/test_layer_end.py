"""Norm, rows of another table, ReLU and dropout in one pass: the same by plain operators, forwards and backwards."""

import copy

import pytest
import torch
import torch.nn.functional as F
from held_cases import CASES, Case, out
from small_bag import random_bits
from torch import Tensor, nn

import enfa
from enfa.nn.triton.layer_end import Drop, Way, layer_end
from enfa.nn.triton.linears.wide import Normed
from enfa.plan.derived.maps import readers
from enfa.plan.derived.order import CHUNK


def _way(index: Tensor, size: int) -> Way:
    return Way(index, readers(index, size, {}, "way"))


@pytest.mark.parametrize("moved", [True, False], ids=["moved", "alike"])
@pytest.mark.parametrize("relu", [True, False], ids=["relu", "plain"])
@pytest.mark.parametrize(("channels", "dtype", "most"), [(3, torch.float64, 1e-13), (130, torch.float32, 1e-6)])
def test_normalised_moved_and_added(check, channels: int, dtype: torch.dtype, most: float, relu: bool, moved: bool) -> None:
    """The gradient of x is that of normalised rows. One row of y is read by many, one of x by none; one counts for nothing."""
    count, rows = 2 * CHUNK, 3 * CHUNK if moved else 2 * CHUNK
    copies = torch.randint(1, 4, (count,))
    copies[0] = 0
    own = torch.randint(0, count - 1, (rows,)) if moved else torch.arange(rows)
    first, second = torch.randint(0, 5, (rows,)) * torch.randint(0, 2, (rows,)), torch.randperm(7)[:5]
    x, y, grad = torch.randn(count, channels), torch.randn(7, channels), torch.randn(rows, channels)
    saved, weight, bias = torch.rand(3, channels) + 0.5, torch.randn(channels), torch.randn(channels)
    x[0] = float("nan")
    given = [t.to(dtype) for t in (x, y, saved, weight, bias, grad)]
    x, y, saved, weight, bias, grad = (t.double() for t in given)
    normal = torch.where(copies[:, None] > 0, (x - saved[0]) * saved[1] * weight + bias, bias).requires_grad_()
    y.requires_grad_()
    wanted = normal[own] + y[second][first]
    wanted = wanted.relu() if relu else wanted
    exact = [wanted, *torch.autograd.grad(wanted, [normal, y], grad)]
    x, y, saved, weight, bias, grad = (t.to(check.device) for t in given)
    x.requires_grad_(), y.requires_grad_()
    own, first, second, copies = (t.to(check.device) for t in (own, first, second, copies))
    ways = _way(first, 5), _way(second, 7)
    found = layer_end(
        x, Normed(saved, weight, bias, copies), rows, relu, own=_way(own, count) if moved else None, y=y, ways=ways
    )  # fmt: skip
    check.near([found, *torch.autograd.grad(found, [x, y], grad)], exact, most)


def test_no_rows(check) -> None:
    x, none = torch.zeros(0, 3, device=check.device, requires_grad=True), torch.zeros(0, dtype=torch.int64, device=check.device)
    norm = Normed(torch.ones(3, 3, device=check.device), None, None, none)
    out = layer_end(x, norm, 0, True, drop=Drop(none, torch.zeros((), dtype=torch.int64, device=check.device), 0.5))
    assert out.shape == torch.autograd.grad(out.sum(), x)[0].shape == (0, 3)


def _step(model: nn.Module, bag: enfa.Bag, device: str) -> list[Tensor]:
    torch.manual_seed(3)
    model = copy.deepcopy(model).to(device)
    out = model(bag.to(device))
    (out * torch.linspace(-1, 1, out.numel(), dtype=out.dtype, device=device).view_as(out)).sum().backward()
    grads = (p.grad if p.grad is not None else torch.zeros_like(p) for p in model.parameters())
    return [out, *grads, *model.buffers()]


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(("layers", "spread"))])
def test_layers_as_by_plain_operators(check, name: str) -> None:
    """Dropout too: all draw the same masks. Rows of one graph, as dropout shares them."""
    torch.manual_seed(0)
    model, graphs = Case(CASES[name]), random_bits(3)
    exact: list[list[Tensor]] = []
    for kind in ("full", "distinct"):
        with check.plainly():
            exact.append(_step(model.double(), enfa.make_plan(graphs, enfa.NodeMarking(), model, kind), "cpu"))
    check.near(exact[1], exact[0], 1e-10)
    found = _step(model.float(), enfa.make_plan(graphs, enfa.NodeMarking(), model), check.device)
    check.near(found, exact[0], 1e-4)  # of biases before a norm, whose gradients are sums that cancel, float32 leaves 3e-5
    if "drop" not in name:
        check.near(_step(model.double(), enfa.make_plan(graphs, enfa.NodeMarking(), model), check.device), exact[0], 1e-10)


FROZEN = {
    "all but the contexts": lambda name: "encoder" not in name,
    "the first conv and norm": lambda name: name.startswith(("encoder", "layers.0.conv", "layers.0.norm")),
    "the contexts": lambda name: "layers" in name and "encoder" in name,
    "all but a norm": lambda name: not name.startswith("layers.0.norm"),
}


@pytest.mark.parametrize("which", FROZEN)
def test_frozen_parts(check, which: str) -> None:
    """Gradients of one of the two tables that meet, of both, or of the norm alone."""
    torch.manual_seed(0)
    model, graphs = enfa.DSSGNN(3, 8, 2, 2).double(), random_bits(3)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not FROZEN[which](name))
    with check.plainly():
        exact = _step(model, enfa.make_plan(graphs, enfa.NodeMarking(), model, "full"), "cpu")
    check.near(_step(model, enfa.make_plan(graphs, enfa.NodeMarking(), model), check.device), exact, 1e-10)


@pytest.mark.parametrize("joined", [False, True])
def test_weights_that_changed_before_the_dropout(check, joined: bool) -> None:
    """Said, as without dropout: what is held back was called with other weights."""

    def ended(m: Case, bag: enfa.Bag) -> Tensor:
        h = m.norm(m.x(bag))
        h = (h + bag.spread(bag.across(m.x(bag), "mean")) if joined else h).relu()
        with torch.no_grad():
            m.norm.weight.mul_(2)
        return out(bag, F.dropout(h, 0.3))

    model = Case(ended)
    plan = enfa.make_plan(random_bits(3), enfa.NodeMarking(), model)
    with pytest.raises(RuntimeError, match="Expected values of Rows to be read before weights that they are computed with"):
        model.to(check.device)(plan.to(check.device))


@pytest.mark.parametrize("name", ["layers, dropout", "layers, dropout of a norm"])
def test_one_pass(check, name: str) -> None:
    """What comes out of a layer comes out of this kernel, and no other drops anything."""
    model = Case(CASES[name])
    plan = enfa.make_plan(random_bits(3), enfa.NodeMarking(), model)
    out = model.to(check.device)(plan.to(check.device))
    seen, waiting = [], [out.grad_fn]
    while waiting:
        node = waiting.pop()
        seen.append(type(node).__name__)
        waiting += [following for following, _ in node.next_functions if following is not None]
    assert "_EndBackward" in seen and "_DropoutBackward" not in seen
