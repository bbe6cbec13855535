"""Linears with what is added to them and with norms before and behind them: linear, and what nn.rowwise.fused makes of Rows."""

import copy
from collections.abc import Callable

import pytest
import torch
from one_table import counted_rows
from torch import Tensor, nn

import enfa.nn.triton.linears.linear
import enfa.nn.triton.linears.linear_norm
import enfa.nn.triton.norm
from enfa.nn.ops.norm import CountedBatchNorm
from enfa.nn.rowwise import Rows
from enfa.nn.triton.linears.linear import linear

WIDTH, HIDDEN = 72, 4  # of which weights are wide, and small


@pytest.fixture(autouse=True)
def _many(monkeypatch: pytest.MonkeyPatch) -> None:
    """As over many rows."""
    monkeypatch.setattr("enfa.nn.triton.linears.small.MOST_ROWS", 0)


@pytest.mark.parametrize("relu", [True, False], ids=["relu", ""])
@pytest.mark.parametrize("biased", [True, False], ids=["bias", ""])
@pytest.mark.parametrize(("rows", "ins", "outs"), [(1, 3, 2), (70, 33, 64), (35, 96, 10), (5, 9, 130)])
def test_what_is_added_to_a_linear(check, rows: int, ins: int, outs: int, biased: bool, relu: bool) -> None:
    shapes = (rows, ins), (outs, ins), (outs,), (rows, outs)
    x, weight, bias, plus = (torch.randn(*shape).double() for shape in shapes)
    with check.plainly():
        near = (nn.functional.linear(x, weight, bias if biased else None) + plus).abs() < 1e-4
    plus += near.double()  # off the kink
    given, above = [x, weight, *[bias] * biased, plus], torch.randn(rows, outs).double()

    def plain(x: Tensor, weight: Tensor, *rest: Tensor) -> Tensor:
        out = x @ weight.T + sum(rest)
        return out.relu() if relu else out

    def own(x: Tensor, weight: Tensor, *rest: Tensor) -> Tensor:
        return linear(x, weight, rest[0] if biased else None, relu, plus=rest[-1])

    results = []
    for function, kind, device in ((plain, torch.float64, "cpu"), (own, torch.float32, check.device)):
        there = [t.to(device, kind, copy=True).requires_grad_() for t in given]
        out = function(*there)
        results.append([out, *torch.autograd.grad(out, there, above.to(device, kind))])
    check.near(results[1], results[0], 2e-6)


@pytest.mark.parametrize("width", [40, WIDTH])
def test_the_gradient_of_a_sum_is_not_copied(check, width: int) -> None:
    x, weight, plus, above = (torch.randn(width, width, device=check.device) for _ in range(4))
    (found,) = torch.autograd.grad(linear(x, weight, None, plus=plus.requires_grad_()), plus, above)
    assert found.data_ptr() == above.data_ptr()


def test_only_what_is_asked_for(check) -> None:
    """Of frozen weights nothing is computed, nor of inputs without a gradient."""
    x, weight, bias, plus = (torch.randn(*s, device=check.device) for s in ((3, 70), (4, 70), (4,), (3, 4)))
    for asked in ((x,), (weight, bias), (bias,), (plus,), (x, plus)):
        for t in (x, weight, bias, plus):
            t.requires_grad_(any(t is one for one in asked))
        out = linear(x, weight, bias, plus=plus)
        exact = torch.autograd.grad(nn.functional.linear(x, weight, bias) + plus, asked, torch.ones_like(out))
        check.near(list(torch.autograd.grad(out, asked, torch.ones_like(out))), [t.cpu() for t in exact], 2e-6)


class Layer(nn.Module):
    """norm(sum of three MLPs), as many models have it; and what becomes of it."""

    def __init__(self, width: int, bias: bool) -> None:
        super().__init__()
        self.first = nn.ModuleList(nn.Linear(width, HIDDEN, bias) for _ in range(3))
        self.norms = nn.ModuleList(CountedBatchNorm(HIDDEN) for _ in range(3))
        self.second = nn.ModuleList(nn.Linear(HIDDEN, width, bias) for _ in range(3))
        self.norm = CountedBatchNorm(width)
        for norm in (*self.norms, self.norm):
            nn.init.normal_(norm.weight), nn.init.normal_(norm.bias)

        self.near: list[float] | None = None

    def act(self, x: Rows) -> Rows:
        if self.near is not None:
            self.near.append(float(x.value.abs().min()))
        return x.relu()

    def mlp(self, i: int, x: Rows) -> Rows:
        return self.second[i](self.act(self.norms[i](self.first[i](x))))

    def summed(self, x: Rows) -> Rows:
        return self.act(self.norm(self.mlp(0, x) + self.mlp(1, x) + self.mlp(2, x)))

    def mlps(self, x: Rows) -> Rows:
        return self.mlp(1, self.mlp(0, x))

    def residual(self, x: Rows) -> Rows:
        return self.act(x + self.mlp(0, x)) + self.mlp(1, x)

    def chain(self, x: Rows) -> Rows:
        """The norm of a sum is never written, either; two linears read it."""
        h = self.act(self.norm(self.mlp(0, x) + x))
        return self.first[2](h) + self.first[1](h).sin()

    def asked(self, x: Rows) -> Rows:
        """Rows that something asks for after a linear has normalised them."""
        r = self.act(self.norms[0](self.first[0](x)))
        s = self.second[0](r)
        s.value  # noqa: B018
        return self.second[1](r * 2) + self.second[2](r) + s


CALLS = {
    "summed": ["later norm", "before linear", "later norm", "before plus linear", "later norm", "before plus norm"],
    "residual": ["later norm", "before plus linear relu", "later norm", "before plus linear"],
    "chain": ["later norm", "before plus later norm", "before linear", "before plus linear"],
    "asked": ["later norm", "before linear", "norm", "linear", "plus linear"],
}


def _run(model: Layer, how: str, x: Tensor, copies: Tensor, weight: Tensor) -> list[Tensor]:
    model, x = copy.deepcopy(model), x.clone().requires_grad_()
    out = getattr(model, how)(counted_rows(x, copies)).value
    (out * weight[:, : out.shape[1]]).sum().backward()
    used = [p.grad for p in model.parameters() if p.grad is not None]
    return [out.detach(), x.grad, *used, *(b.double() for b in model.buffers())]  # type: ignore[list-item]


def _off_the_kink(model: Layer, how: str, copies: Tensor, width: int) -> Tensor:
    """Inputs with which rounding decides nothing."""
    model = copy.deepcopy(model)
    with torch.no_grad():
        while True:
            x, model.near = torch.randn(len(copies), width).double(), []
            getattr(model, how)(counted_rows(x, copies)).value  # noqa: B018
            if min(model.near) > 1e-5:
                return x


@pytest.mark.parametrize(("width", "bias"), [(40, True), (WIDTH, False)])
@pytest.mark.parametrize("how", CALLS)
def test_is_the_plain_layer(check, how: str, width: int, bias: bool) -> None:
    copies, model = torch.randint(0, 5, (33,)), Layer(width, bias)
    weight = torch.randn(33, width).double() * (copies > 0)[:, None]
    double = copy.deepcopy(model).double()
    with check.plainly():
        x = _off_the_kink(double, how, copies, width)
        exact = _run(double, how, x, copies, weight)
    found = _run(model.to(check.device), how, *(t.to(check.device) for t in (x.float(), copies, weight.float())))
    # the gradient of a bias before a norm is 0 up to rounding where others are added to its linear: 6e-6
    check.near(found, exact, 1e-5)


def test_what_a_row_holds_that_nobody_counts_is_of_no_account(check) -> None:
    """It comes out of a norm as the bias, also where that is never written: layer upon layer, it stays finite."""
    model, copies = Layer(WIDTH, True).to(check.device), torch.tensor([0, 2, 1, 3, 1, 0])
    x, weight = torch.randn(6, WIDTH), torch.randn(6, WIDTH) * (copies > 0)[:, None]
    outs = []
    for huge in (1.0, 1e20):
        there = torch.where((copies > 0)[:, None], x, x * huge)
        out, of_x, *rest = _run(model, "mlps", *(t.to(check.device) for t in (there, copies, weight)))
        outs.append([out, *rest])
        assert bool(of_x.isfinite().all())
    assert all(torch.equal(*pair) for pair in zip(*outs, strict=True))


def _recorded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which of our own operations are called, and with what on the way."""
    found: list[str] = []

    def listening(name: str, function: Callable) -> Callable:
        def call(*args, **kwargs):
            words = ["before"] * (kwargs.get("before") is not None) + ["plus"] * (kwargs.get("plus") is not None)
            relu = name == "linear" and len(args) > 3 and args[3]
            later = kwargs.get("later") or (name == "counted" and args[-1] is True)
            kind = {"linear": "linear", "linear_norm": "norm", "counted": "norm alone"}[name]
            found.append(" ".join([*words, *["later"] * bool(later), kind, *["relu"] * bool(relu)]))
            return function(*args, **kwargs)

        return call

    for module, function, name in (
        (enfa.nn.triton.linears.linear, "linear", "linear"), (enfa.nn.triton.linears.linear_norm, "linear_norm", "linear_norm"),
        (enfa.nn.triton.norm, "counted_norm", "counted"),
    ):  # fmt: skip
        monkeypatch.setattr(module, function, listening(name, getattr(module, function)))
    return found


@pytest.mark.parametrize("how", CALLS)
def test_what_runs_as_one(check, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = _recorded(monkeypatch)
    model = Layer(WIDTH, True).to(check.device)
    getattr(model, how)(counted_rows(torch.randn(5, WIDTH, device=check.device))).value  # noqa: B018
    assert found == CALLS[how]
