"""Counted norms, alone and after a linear: norm, norm_kernels, linear_norm, turned, and split and wide as they use them."""

import copy
from collections.abc import Callable
from functools import partial
from itertools import pairwise, product

import pytest
import torch
from one_table import counted_rows
from torch import Tensor, nn

import enfa.nn.triton.linears.linear_norm
from enfa.nn.ops.norm import CountedBatchNorm
from enfa.nn.triton.norm import counted_norm

Modules = tuple[nn.Module, ...]


def _run(modules: Modules, x: Tensor, copies: Tensor, weight: Tensor) -> list[Tensor]:
    """Outputs, gradients and running statistics: of a norm, of one after a linear, or of two of these one after the other."""
    modules, x = copy.deepcopy(modules), x.clone().requires_grad_()
    rows = counted_rows(x, copies)
    for module in modules:
        rows = module(rows)
        if isinstance(module, CountedBatchNorm):
            rows = rows.relu()
    out = rows.value
    (out * weight).sum().backward()
    grads = [grad for m in modules for grad in _gradients(m)]
    return [out.detach(), x.grad, *grads, *(b.double() for m in modules for b in m.buffers())]  # type: ignore[list-item]


def _gradients(module: nn.Module) -> list[Tensor]:
    """A linear's as one matrix: before a norm that of its bias cancels to rounding, whose size is that of what cancelled."""
    found = [p.grad for p in module.parameters() if p.grad is not None]
    return [torch.cat([found[0], found[1][:, None]], 1)] if isinstance(module, nn.Linear) else found


def _modules(widths: tuple[int, ...], affine: bool) -> Modules:
    if len(widths) == 1:
        found: list[nn.Module] = [CountedBatchNorm(widths[0], affine=affine)]
    else:
        found = []
        for ins, outs in pairwise(widths):
            found += [nn.Linear(ins, outs), CountedBatchNorm(outs, affine=affine)]
    for norm in found:
        if isinstance(norm, CountedBatchNorm) and affine:
            nn.init.normal_(norm.weight), nn.init.normal_(norm.bias)
    return tuple(found)


def _off_the_kink(modules: Modules, x: Tensor, copies: Tensor) -> Tensor:
    """1 where no ReLU stands so near its kink that rounding decides, for whole rows; rows of no copies get no gradient."""
    near = torch.zeros(len(x), dtype=torch.bool)
    modules = copy.deepcopy(modules)
    with torch.no_grad():
        for module in modules:
            x = module(counted_rows(x, copies)).value
            if isinstance(module, CountedBatchNorm):
                near |= (x.abs() < 1e-4).any(1)
                x = x.relu()
    return ((copies > 0) & ~near)[:, None].double()


# a norm alone; narrow linears; wide ones, whose gradient is turned with them and not; two in one go
CASES = [
    (20, (1,), True), (131, (5,), False), (131, (70,), True), (67, (4, 1), True), (20, (2, 17), False),
    (131, (9, 33), True), (35, (20, 70), False), (67, (70, 20), True), (35, (130, 3), True), (35, (9, 72, 72), True),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "widths", "affine"), CASES)
def test_is_the_plain_norm(check, rows: int, widths: tuple[int, ...], affine: bool) -> None:
    modules = _modules(widths, affine)
    x, copies = torch.randn(rows, widths[0]).double(), torch.randint(0, 5, (rows,))
    copies[0], copies[1] = 2, 0
    doubles = tuple(copy.deepcopy(m).double() for m in modules)
    with check.plainly():
        weight = torch.randn(rows, widths[-1]).double() * _off_the_kink(doubles, x, copies)
        exact = _run(doubles, x, copies, weight)
    there = tuple(m.to(check.device) for m in modules)
    found = _run(there, *(t.to(check.device) for t in (x.float(), copies, weight.float())))
    check.near(found, exact, 5e-6)


def _calls(modules: Modules, device: str, monkeypatch: pytest.MonkeyPatch, read: int | None = None) -> list[str]:
    """Which kernels run for norms: "linear", with the linear before; "later", "before": two of these as one; "norm": alone."""
    found: list[str] = []
    both, alone = enfa.nn.triton.linears.linear_norm.linear_norm, counted_norm

    def linear_norm(*args, before=None, later=False, **more):
        found.append("later" if later else "linear" if before is None else "before")
        return both(*args, before=before, later=later, **more)

    monkeypatch.setattr("enfa.nn.triton.linears.linear_norm.linear_norm", linear_norm)

    def norm(*args):
        found.append("norm later" if args[-1] is True else "norm")
        return alone(*args)

    monkeypatch.setattr("enfa.nn.triton.norm.counted_norm", norm)
    rows = counted_rows(torch.randn(5, 9, device=device))
    for place, module in enumerate(modules):
        rows = module.to(device)(rows)
        if isinstance(module, nn.BatchNorm1d):
            rows = rows.relu()
        if place == read:
            rows.value  # noqa: B018
    rows.value  # noqa: B018
    return found


def test_two_norms_run_as_one(check, monkeypatch: pytest.MonkeyPatch) -> None:
    """That the wide case above is the one in which a linear normalises what it reads; only where our kernels know all of it."""

    def called(change: Callable[[list[nn.Module]], object] = len, widths=(9, 72, 72), read: int | None = None) -> list[str]:
        modules = list(_modules(widths, True))
        change(modules)
        with monkeypatch.context() as patch:
            return _calls(tuple(modules), check.device, patch, read)

    assert called() == ["later", "before"]
    assert called(widths=(9, 64, 64)) == ["linear", "linear"]
    assert called(read=0) == ["norm later", "before"]
    assert called(read=1) == ["linear", "linear"]
    assert called(read=2) == ["linear", "norm"]
    assert called(lambda m: m[1].eval()) == ["linear"]
    assert called(lambda m: m.__setitem__(1, CountedBatchNorm(72, momentum=None))) == ["linear", "linear"]
    assert called(lambda m: m.__setitem__(1, nn.BatchNorm1d(72))) == ["later", "before"]
    assert called(lambda m: setattr(m[1], "bias", None)) == ["linear"]
    assert called(lambda m: m.__setitem__(2, nn.utils.parametrizations.weight_norm(m[2]))) == ["later", "before"]


def _hooked(modules: list[nn.Module], place: int) -> None:
    modules[place].register_forward_hook(lambda module, args, out: (out.value, None)[1])


def _patched(modules: list[nn.Module], place: int) -> None:
    modules[place].forward = partial(type(modules[place]).forward, modules[place])  # type: ignore[method-assign]


class _Own(CountedBatchNorm):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).clamp(max=1)


@pytest.mark.parametrize(
    ("how", "place"), [*product(["hook that reads", "own forward"], range(4)), ("subclass", 1), ("subclass", 3)]
)
def test_modules_that_something_looks_into(check, how: str, place: int) -> None:
    """Hooks see Rows and may read them, and modules may do what they want: the numbers are those of plain operators."""
    modules = list(_modules((9, 72, 72), True))
    if how == "subclass":
        modules[place] = _Own(72)
    else:
        (_hooked if how.startswith("hook") else _patched)(modules, place)
    x, copies = torch.randn(35, 9).double(), torch.randint(1, 5, (35,))
    doubles = tuple(copy.deepcopy(m).double() for m in modules)
    with check.plainly():
        weight = torch.randn(35, 72).double() * _off_the_kink(doubles, x, copies)
        exact = _run(doubles, x, copies, weight)
    there = tuple(m.to(check.device) for m in modules)
    check.near(_run(there, *(t.to(check.device) for t in (x.float(), copies, weight.float()))), exact, 1e-5)


@pytest.mark.parametrize("widths", [(5,), (70,)], ids=str)
def test_float64(check, widths: tuple[int, ...]) -> None:
    modules = tuple(m.double() for m in _modules(widths, True))
    x, weight = torch.randn(131, *widths).double(), torch.randn(131, *widths).double()
    copies = torch.randint(0, 5, (131,))
    weight *= (copies > 0)[:, None]
    with check.plainly():
        exact = _run(modules, x, copies, weight)
    found = _run(tuple(m.to(check.device) for m in modules), *(t.to(check.device) for t in (x, copies, weight)))
    check.near(found, exact, 1e-12)


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:All-NaN slice")  # of the interpreter, at what that row holds
@pytest.mark.parametrize("widths", [(5,), (5, 9), (20, 70), (130, 3), (9, 72, 72), (140, 130)], ids=str)
def test_what_a_row_holds_that_nobody_counts_is_of_no_account(check, widths: tuple[int, ...]) -> None:
    """Nothing reads such a row, so no gradient comes to it; and it comes out of a norm as the bias, however large it was."""
    modules = tuple(m.to(check.device) for m in _modules(widths, True))
    x, copies, weight = torch.randn(70, widths[0]), torch.randint(1, 5, (70,)), torch.randn(70, widths[-1])
    spoilt = x.clone()
    for row, bad in {0: 1e12, 7: -torch.inf, 66: 1e6, 69: torch.nan}.items():
        copies[row], spoilt[row], weight[row] = 0, bad, 0
    expected, found = (_run(modules, *(t.to(check.device) for t in (v, copies, weight))) for v in (x, spoilt))
    for value, reference in zip(found, expected, strict=True):
        assert bool(value.isfinite().all()) and torch.equal(value, reference)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("widths", [(6,), (70,), (5, 9), (20, 70), (140, 130)], ids=str)
def test_equal_rows_come_out_as_the_bias(check, widths: tuple[int, ...], dtype: torch.dtype) -> None:
    """Exactly: a ReLU behind the norm, whose bias begins as 0, would pass what rounding leaves."""
    *linear, norm = (m.to(check.device, dtype) for m in _modules(widths, affine=True))
    for rows in (1, 3, 50, 300):
        copies = torch.randint(0, 9, (rows,))
        copies[0] = 3
        given = torch.rand(1, widths[0], dtype=dtype) if not linear else torch.zeros(1, widths[0], dtype=dtype)
        out = counted_rows(given.expand(rows, -1).to(check.device), copies.to(check.device))
        for module in (*linear, norm):
            out = module(out)
        assert torch.equal(out.value, norm.bias.expand(rows, -1))


def test_no_rows_and_no_counts(check) -> None:
    for rows in (0, 3):
        x = torch.ones(rows, 4, device=check.device, requires_grad=True)
        copies = torch.zeros(rows, dtype=torch.int64, device=check.device)
        norm = CountedBatchNorm(4).to(check.device)
        running = (norm.running_mean, norm.running_var, norm.num_batches_tracked, 0.1)
        out, _, _ = counted_norm(x, norm.weight, norm.bias, copies, 1e-5, True, running)
        (0 * out).sum().backward()  # nothing reads them
        assert out.shape == (rows, 4) and not out.any() and not x.grad.any()  # type: ignore[union-attr]
        assert not norm.running_mean.any() and bool((norm.running_var == 1).all()) and norm.num_batches_tracked == 1


class _NoGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return x * 1

    @staticmethod
    def backward(ctx, grad: Tensor) -> None:
        return None


@pytest.mark.parametrize("widths", [(5,), (5, 6), (72, 72)], ids=str)
def test_read_by_a_function_that_returns_no_gradient(check, widths: tuple[int, ...]) -> None:
    x = torch.randn(7, widths[0], device=check.device, requires_grad=True)
    out = counted_rows(x)
    for module in _modules(widths, affine=True):
        out = module.to(check.device)(out)
    _NoGradient.apply(out.value).sum().backward()
    assert x.grad is None or not x.grad.any()


@pytest.mark.parametrize(("widths", "dtype"), [((5,), torch.float64), ((5, 6), torch.float64), ((140, 130), torch.float32),
                                               ((72, 72), torch.float32)])  # fmt: skip
def test_rows_that_do_not_count_give_no_gradient(check, widths: tuple[int, ...], dtype: torch.dtype) -> None:
    """A model may read them, as it may of a norm among some rows: they come out as the bias."""
    rows, copies = 40, torch.randint(0, 3, (40,))
    modules = tuple(m.to(dtype) for m in _modules(widths, affine=True))
    x, weight = torch.randn(rows, widths[0], dtype=dtype), torch.randn(rows, widths[-1], dtype=dtype)

    def run(device: str) -> list[Tensor]:
        there, given = copy.deepcopy(modules), x.clone().to(device).requires_grad_()
        out = counted_rows(given, copies.to(device))
        for module in there:
            out = module.to(device)(out)
        (out.value * weight.to(device)).sum().backward()
        return [out.value, given.grad, *(grad for m in there for grad in _gradients(m))]  # type: ignore[list-item]

    with check.plainly():
        exact = run("cpu")
    assert not exact[1][copies == 0].any() and exact[0][copies == 0].any()
    check.near(run(check.device), exact, 1e-11 if dtype == torch.float64 else 1e-5)
