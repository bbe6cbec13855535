"""Under autocast in bfloat16, rows between layers are stored in bfloat16, and our own kernels compute on them."""

import copy
from contextlib import nullcontext

import pytest
import torch
from held_cases import AUTOCAST, CASES, Case
from one_table import counted_rows
from small_bag import random_bits
from torch import Tensor, nn

import enfa
from enfa.nn.ops.norm import CountedBatchNorm
from enfa.nn.rowwise import Rows, elementwise, exact, products
from enfa.nn.triton.linears import linear as own
from enfa.nn.triton.linears import linear_norm
from enfa.nn.triton.linears.small import small_linear
from enfa.testing import random_graphs

EPS = 2.0**-8  # half of what two neighbours in bfloat16 differ by


@pytest.fixture(autouse=True)
def _many(monkeypatch: pytest.MonkeyPatch) -> None:
    """As over many rows."""
    monkeypatch.setattr("enfa.nn.triton.linears.small.MOST_ROWS", 0)


def _half(tensor: Tensor) -> Tensor:
    return tensor.bfloat16().double()


@pytest.mark.parametrize("relu", [True, False], ids=["relu", ""])
@pytest.mark.parametrize(("rows", "ins", "outs"), [(1, 3, 2), (70, 33, 64), (35, 96, 10), (150, 130, 140)])
def test_a_product_of_what_bfloat16_holds_is_rounded_once(check, rows: int, ins: int, outs: int, relu: bool) -> None:
    x, weight, plus, above = (_half(torch.randn(s)) for s in ((rows, ins), (outs, ins), (rows, outs), (rows, outs)))
    bias = torch.randn(outs).double()
    found = []
    for kind, device in ((torch.float64, "cpu"), (torch.bfloat16, check.device)):
        own_kind = torch.float64 if kind == torch.float64 else torch.float32
        kinds = (kind, own_kind, own_kind, kind)
        there = [t.to(device, k, copy=True).requires_grad_() for t, k in zip((x, weight, bias, plus), kinds)]
        if kind == torch.float64:
            value = there[0] @ there[1].T + there[2] + there[3]
            kink = value.abs() < 2 * EPS * value.abs().max()  # which side of it rounding decides
            value = value.relu() if relu else value
            above[kink] = 0
        else:
            value = own.linear(*there[:3], relu, plus=there[3])
        assert value.dtype == kind
        found.append([value, *torch.autograd.grad(value, there, above.to(device, kind))])
    assert [t.dtype for t in found[1][1:]] == [torch.bfloat16, torch.float32, torch.float32, torch.bfloat16]
    check.near(found[1], found[0], EPS)
    check.near(found[1][2:4], found[0][2:4], 1e-6)  # of weights, in float32


@pytest.mark.parametrize("relu", [True, False], ids=["relu", ""])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_few_rows_are_computed_in_float32(check, kind: torch.dtype, relu: bool) -> None:
    x, weight, bias, above = (_half(torch.randn(s)) for s in ((40, 33), (35, 33), (35,), (40, 35)))
    exact_in = [t.clone().requires_grad_() for t in (x, weight, bias)]
    exact = nn.functional.linear(*exact_in)
    above[exact.abs() < 0.1] = 0  # which side of a kink rounding decides
    exact = exact.relu() if relu else exact
    there = [t.to(check.device, k).requires_grad_() for t, k in zip((x, weight, bias), (kind, torch.float32, torch.float32))]
    found = small_linear(*there, relu, True)
    assert found.dtype == torch.bfloat16
    check.near([found], [exact], EPS)
    grads = torch.autograd.grad(found, there, above.to(found))
    wanted = torch.autograd.grad(exact, exact_in, above)
    assert [g.dtype for g in grads] == [t.dtype for t in there]
    check.near(list(grads[:1]), list(wanted[:1]), EPS)
    check.near(list(grads[1:]), list(wanted[1:]), 1e-6)


class Layers(nn.Module):
    """What models are made of: a norm between two linears, one behind them, and rows that go past."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second, self.past = nn.Linear(width, 2 * width), nn.Linear(2 * width, width), nn.Linear(width, width)
        self.norm, self.last = CountedBatchNorm(2 * width), CountedBatchNorm(width)
        self.score = nn.Linear(width, 3)
        for norm in (self.norm, self.last):
            nn.init.uniform_(norm.weight, 0.5, 1.5)
            norm.bias.data = torch.where(torch.arange(len(norm.bias)) % 3 == 0, -7.0, 7.0)  # no row near a ReLU's kink

    def forward(self, x: Rows) -> Rows:
        h = self.second(self.norm(self.first(x)).relu()) + self.past(x)
        return self.score(self.last(h).relu())


def _step(layers: nn.Module, x: Tensor, copies: Tensor, above: Tensor, mixed: bool) -> list[Tensor]:
    """Output, gradients and statistics."""
    layers, x = copy.deepcopy(layers), x.clone().requires_grad_()
    with torch.autocast(x.device.type, torch.bfloat16, enabled=mixed):
        out = layers(counted_rows(x, copies))
        assert out.dtype == (torch.bfloat16 if mixed else x.dtype)
        out = out.value
    grads = torch.autograd.grad(out, [x, *layers.parameters()], above.to(out.dtype))
    return [out, *grads, *(b.double() for b in layers.buffers())]


@pytest.mark.parametrize(("width", "reads_norm"), [(24, True), (72, False)])
def test_layers_are_as_near_as_by_autocast_itself(
    check, width: int, reads_norm: bool, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """``reads_norm``: the first of the two norms is applied where the second linear reads its rows, once."""
    kernels, real = [], linear_norm.linear_norm
    monkeypatch.setattr(linear_norm, "linear_norm", lambda *a, **k: kernels.append((a[0].dtype, k)) or real(*a, **k))
    layers, x, copies = Layers(width), torch.randn(90, width), torch.randint(0, 4, (90,))
    above = torch.randn(90, 3) * (copies > 0)[:, None]
    with check.plainly():
        exact = _step(layers.double(), x.double(), copies, above.double(), False)
        plain = _step(layers.float(), x, copies, above, True)
    given = layers.to(check.device), *(t.to(check.device) for t in (x, copies, above))
    kernels.clear()
    found, again = _step(*given, True), _step(*given, True)
    assert all(map(torch.equal, found, again))
    kinds = [(kind, k["before"] is not None) for kind, k in kernels[:2]]
    assert kinds == [(torch.bfloat16, False), (torch.bfloat16, reads_norm)]
    for value, autocast, reference in zip(found, plain, exact, strict=True):
        size = max(float(reference.detach().norm()), 1.0)
        away, allowed = (float((v.double().cpu() - reference).detach().norm()) / size for v in (value, autocast))
        assert away <= max(1.5 * allowed, 2 * EPS), (away, allowed)


# the interpreter takes a second for some of them: there, every sixth
SOME = [name for name in CASES if name != "a deep chain"][:: 1 if torch.cuda.is_available() else 6]


@pytest.mark.parametrize("name", [*AUTOCAST, *SOME])
def test_as_if_nothing_were_held_back(check, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a model does between two operations: values and types under autocast."""
    model = Case({**AUTOCAST, **CASES}[name]).to(check.device)
    bag = enfa.make_plan(random_bits(4), enfa.NodeMarking(), model, "distinct").to(check.device)
    found = []
    for mixed, held in ((True, True), (True, False), (False, False)):
        torch.manual_seed(0)
        if not held:
            for module in (elementwise, exact, products):
                monkeypatch.setattr(module, "holds", lambda rows: False)
        with torch.autocast(torch.device(check.device).type, torch.bfloat16, enabled=mixed and name not in AUTOCAST):
            found.append(copy.deepcopy(model)(bag).detach())
    own_value, autocast, plain = found
    assert own_value.dtype == autocast.dtype
    size = float(plain.norm())
    away, allowed = (float((value - plain).norm()) / size for value in (own_value, autocast))
    assert away <= 2 * max(allowed, 2 * EPS), (away, allowed)


@pytest.mark.parametrize("mixed", [True, False])
def test_what_a_small_linear_gave_may_be_written_into(check, mixed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("enfa.nn.triton.linears.small.MOST_ROWS", 1024)
    linear, x = nn.Linear(5, 7, device=check.device), torch.randn(40, 5, device=check.device)
    with torch.autocast(x.device.type, torch.bfloat16, enabled=mixed):
        h = linear(counted_rows(x))
        h += 0.5
        value = h.value
    value.float().sum().backward()
    check.near([linear.bias.grad], [torch.full((7,), 40.0)], 1e-6)


def test_a_norm_without_a_bias(check) -> None:
    linear, weight = nn.Linear(5, 7, device=check.device), torch.ones(7, device=check.device, requires_grad=True)
    x = torch.randn(40, 5, device=check.device, requires_grad=True)
    with torch.autocast(x.device.type, torch.bfloat16):
        value = nn.functional.batch_norm(linear(counted_rows(x)), None, None, weight, None, True).value
    value.float().square().sum().backward()
    assert value.dtype == torch.bfloat16 and x.grad is not None and x.grad.isfinite().all()


@pytest.mark.parametrize("kind", ["full", "distinct"])
@pytest.mark.parametrize("plainly", [True, False])
@pytest.mark.parametrize("raised", [True, False])
def test_types_of_terms_are_those_of_every_plan(check, kind: str, plainly: bool, raised: bool) -> None:
    """What SSWL's layers read and add up, ``raised``: where one of the terms is float32."""
    model, seen = enfa.SSWLGNN(3, 16, 2, 1, norm=None), []

    class Seen(nn.Module):
        def forward(self, h: Rows) -> Rows:
            seen.append(h.dtype)
            return h

    class Raised(nn.Module):
        def forward(self, h: Rows) -> Rows:
            return h.float() if raised else h

    model.layers[0].point = nn.Sequential(Seen(), nn.Linear(16, 16), Raised())
    model.layers[0].norm = Seen()
    bag = enfa.make_plan(random_graphs(3, 6), enfa.NodeMarking(), model, kind).to(check.device)
    seen.clear()
    with check.plainly() if plainly else nullcontext(), torch.autocast(torch.device(check.device).type, torch.bfloat16):
        model.to(check.device)(bag)
    assert seen == [torch.bfloat16, torch.float32 if raised else torch.bfloat16]
