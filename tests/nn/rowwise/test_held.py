"""Held operations: everything is as if nothing were held back."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial
from itertools import product

import pytest
import torch
from held_cases import AUTOCAST, CASES, WIDTH, Case
from in_threads import assert_as_alone
from one_table import counted_rows
from small_bag import random_bits
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.utils import parametrizations
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import enfa
from enfa.nn.bag import bag as verbs
from enfa.nn.rowwise import elementwise, exact, products
from enfa.nn.rowwise.fused import HeldLinear, HeldNorm, HeldSum
from enfa.nn.rowwise.held import DEEPEST, HeldColumns
from enfa.nn.rowwise.layer_end import HeldJoin, HeldSpread
from enfa.testing import random_graphs

GRAPHS = random_bits(4)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> Callable[[], object]:
    """From the call on, nothing is held back."""

    def off() -> None:
        for module in (elementwise, exact, products, verbs):
            monkeypatch.setattr(module, "holds", lambda rows: False)
        monkeypatch.setattr(HeldColumns, "holds", staticmethod(lambda parts: False))

    return off


def _plan(model: nn.Module, kind: str = "distinct") -> enfa.Bag:
    return enfa.make_plan(GRAPHS, enfa.NodeMarking(), model, kind)


def _run(model: nn.Module, *bags: enfa.Bag, call: Callable[..., Tensor] | None = None) -> dict[str, Tensor | None]:
    """Outputs, gradients and buffers of two steps on a copy of the model."""
    model, found = copy.deepcopy(model), {}
    for step in range(2):
        torch.manual_seed(step)
        model.zero_grad()
        value = torch.stack([(call or nn.Module.__call__)(model, bag) for bag in bags])
        (value * torch.linspace(-1, 1, value.numel(), dtype=value.dtype).view_as(value)).sum().backward()
        found[f"output {step}"] = value.detach()
        found |= {f"{name} {step}": None if p.grad is None else p.grad.clone() for name, p in model.named_parameters()}
        found |= {f"{name} {step}": b.clone() for name, b in model.named_buffers()}
    return found


def _same(found: dict[str, Tensor | None], expected: dict[str, Tensor | None]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if value is None:
            assert found[name] is None or not found[name].any(), name  # type: ignore[union-attr]
        else:
            assert found[name] is not None and value.isfinite().all(), name
            size = 1e-11 if value.dtype == torch.float64 else 1e-4
            torch.testing.assert_close(found[name], value, rtol=size, atol=size, msg=lambda m, name=name: f"{name}: {m}")


NORMS = {"batch": nn.BatchNorm1d, "cumulative": partial(enfa.CountedBatchNorm, momentum=None)}
# every case with both norms and both plans: of the four combinations one pair or the other, in turn
PAIRS = list(zip(NORMS, ("full", "distinct"))), list(zip(NORMS, ("distinct", "full")))
TWICE = [(name, *pair) for place, name in enumerate(CASES) for pair in PAIRS[place % 2]]


@pytest.mark.parametrize(("name", "norm", "kind"), TWICE)
def test_as_if_nothing_were_held_back(name: str, norm: str, kind: str, at_once: Callable) -> None:
    torch.manual_seed(0)
    model = Case(CASES[name], NORMS[norm]).double()
    bag = _plan(model, kind)
    found = _run(model, bag)
    at_once()
    _same(found, _run(model, bag))


@pytest.mark.parametrize("kind", ["full", "distinct"])
@pytest.mark.parametrize("name", AUTOCAST)
def test_autocast_of_a_part(name: str, kind: str, at_once: Callable) -> None:
    torch.manual_seed(0)
    model = Case(AUTOCAST[name], nn.BatchNorm1d)
    bag = _plan(model, kind)
    found = _run(model, bag)
    at_once()
    _same(found, _run(model, bag))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", ["full", "distinct"])
def test_columns_of_several_tables_under_autocast(kind: str, dtype: torch.dtype) -> None:
    """They are held back whatever autocast asks for, and computed in that."""
    model = enfa.DSGNN(3, 16, 2, 3, jk="concat", readout="max")
    bag = enfa.make_plan(random_graphs(3, 6), enfa.NodeMarking(), model, kind)
    with torch.autocast("cpu", dtype):
        assert model(bag).dtype == dtype


def test_a_relu_of_known_values_is_computed_as_it_was_called() -> None:
    """Neither a checkpoint nor inference mode that reads it first makes it something else."""
    lin, other = nn.Linear(5, 7), nn.Linear(7, 7)
    for how in ("checkpoint", "inference"):
        h = lin(counted_rows(torch.randn(40, 5, requires_grad=True)))
        r = h.relu()
        h * 2  # asks for its values
        if how == "checkpoint":
            y = checkpoint(lambda r: other(r).tanh(), r, use_reentrant=False)
        else:
            with torch.inference_mode():
                r.value  # noqa: B018
            y = other(r)
        y.value.square().sum().backward()
        assert lin.weight.grad.any()  # type: ignore[union-attr]


class _OfCalls(TorchFunctionMode):
    """Doubles what linears give, as modes do that quantise or add noise."""

    def __torch_function__(self, func: Callable, types: object, args: tuple = (), kwargs: dict | None = None) -> object:
        out = func(*args, **(kwargs or {}))
        return out * 2 if func is nn.functional.linear else out


class _OfProducts(TorchDispatchMode):
    def __torch_dispatch__(self, func: Callable, types: object, args: tuple = (), kwargs: dict | None = None) -> object:
        out = func(*args, **(kwargs or {}))
        return out * 2 if func is torch.ops.aten.addmm.default else out


@pytest.mark.parametrize("mode", [_OfCalls, _OfProducts])
def test_modes_see_what_is_called_in_them(mode: Callable) -> None:
    lin, h = nn.Linear(5, 7), counted_rows(torch.randn(40, 5))
    outside = lin(h)
    with mode():
        inside = lin(h)
        read = outside.value
    expected = nn.functional.linear(h.value, lin.weight, lin.bias)
    torch.testing.assert_close(read, expected)
    torch.testing.assert_close(inside.value, 2 * expected)


def test_something_is_held_back() -> None:
    """The tests above would be worth nothing otherwise."""
    model = Case(CASES["columns, sum"]).double()
    bag = _plan(model)
    h = model.lin(x := model.x(bag))
    n = model.norm(h)
    r = n.relu()
    assert isinstance(h.held, HeldLinear) and isinstance(n.held, HeldNorm) and r.held is n.held and r.activated
    assert isinstance(torch.cat([x, bag.propagate(model.conv, x)], 1).held, HeldColumns)
    for s in (h + x, x + h, h + model.other(x), (h + x) + model.other(x), torch.add(x, h), h.add(x)):
        assert isinstance(s.held, HeldSum) and s.relu().held is s.held
    assert all(s.held is None for s in (x + x, h + model.score(x), h + 1, torch.add(h, x, alpha=2), h.relu() + x))
    wide = Case(CASES["layers"]).double()
    bag = _plan(wide)
    n, s = wide.norm(wide.lin(bag.propagate(wide.conv, x := wide.x(bag)))), bag.spread(wide.bare(bag.across(x, "mean")))
    assert isinstance(s.held, HeldSpread) and all(isinstance(both.held, HeldJoin) for both in (n + s, s + n))
    h = model.lin(x := model.x(_plan(model)))
    r = model.norm(h).relu()
    (r.value * 2).sum().backward()
    assert h.held is not None and not model.lin.bias.grad.any() and model.lin.weight.grad.any()  # type: ignore[union-attr]


@pytest.mark.parametrize("how", ["lin", "norm"])
@pytest.mark.parametrize("reads", [True, False], ids=["reads", "keeps"])
def test_hooks_see_rows(how: str, reads: bool, at_once: Callable) -> None:
    """Values that are read in a hook, and after the pass."""
    torch.manual_seed(0)
    model = Case(CASES["residual"]).double()
    bag, found = _plan(model), []
    for held in (True, False):
        if not held:
            at_once()
        there, seen = copy.deepcopy(model), []
        hook = lambda module, args, out, seen=seen: seen.append(out.value if reads else out)  # noqa: E731
        there.get_submodule(how).register_forward_hook(hook)
        result = _run(there, bag)
        assert len(seen) == 2
        found.append(result | {f"seen {i}": value if reads else value.value for i, value in enumerate(seen)})
    _same(*found)


@pytest.mark.parametrize("place", ["lin", "norm"])
def test_what_a_hook_keeps_is_read_before_weights_change(place: str) -> None:
    model, seen = Case(CASES["residual"]).double(), []
    bag = _plan(model)
    model.get_submodule(place).register_forward_hook(lambda module, args, out: seen.append(out))
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    model(bag).sum().backward()
    optimiser.step()
    with pytest.raises(RuntimeError, match=r"Expected values of Rows to be read before weights that they are .* change"):
        seen[0].value  # noqa: B018
    model(bag).sum().backward()  # what can no longer be computed is in nothing's way
    assert int(model.norm.num_batches_tracked) == 2


class _Own(nn.BatchNorm1d):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * 2


def _weight_norm(m: Case) -> None:
    m.lin, m.other = (parametrizations.weight_norm(one) for one in (m.lin, m.other))


def _spectral_norm(m: Case) -> None:
    m.lin, m.other = (parametrizations.spectral_norm(one) for one in (m.lin, m.other))


def _by_hooks(m: Case) -> None:
    torch.nn.utils.weight_norm(m.lin), torch.nn.utils.spectral_norm(m.other)


def _patched(m: Case) -> None:
    m.lin.forward = lambda x: nn.functional.linear(x * 2, m.lin.weight)  # type: ignore[method-assign]


CHANGES: dict[str, Callable[[Case], object]] = {
    "weight norm": _weight_norm, "spectral norm": _spectral_norm, "weights by hooks": _by_hooks,
    "one weight": lambda m: setattr(m.other, "weight", m.lin.weight),
    "lazy": lambda m: setattr(m, "lin", nn.LazyLinear(WIDTH).double()),
    "own norm": lambda m: setattr(m, "norm", _Own(WIDTH).double()), "in one place": lambda m: setattr(m, "second", m.norm),
    "frozen": lambda m: m.lin.requires_grad_(False), "frozen weight": lambda m: m.lin.weight.requires_grad_(False),
    "frozen bias": lambda m: m.lin.bias.requires_grad_(False), "frozen norm": lambda m: m.norm.requires_grad_(False),
    "no bias of the norm": lambda m: setattr(m.norm, "bias", None),
    "no statistics": lambda m: setattr(m, "norm", nn.BatchNorm1d(WIDTH, affine=False, track_running_stats=False)),
    "layer norm": lambda m: setattr(m, "norm", nn.LayerNorm(WIDTH).double()),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("change", CHANGES)
def test_other_modules(change: str, at_once: Callable) -> None:
    torch.manual_seed(0)
    model = Case(CASES["residual"], nn.BatchNorm1d).double()
    CHANGES[change](model)
    bag = _plan(model)
    found = _run(model, bag)
    at_once()
    _same(found, _run(model, bag))


def test_a_forward_of_one_s_own(at_once: Callable) -> None:
    model = Case(CASES["residual"], nn.BatchNorm1d).double()
    bag, found = _plan(model), []
    for held in (True, False):
        if not held:
            at_once()
        there = copy.deepcopy(model)
        _patched(there)
        there.norm.forward = lambda x, m=there: nn.BatchNorm1d.forward(m.norm, x) + 1  # type: ignore[method-assign]
        out = there(bag)
        out.square().sum().backward()
        found.append({"out": out, **{name: p.grad for name, p in there.named_parameters()}, **dict(there.named_buffers())})
    _same(*found)


@pytest.mark.parametrize("name", ["residual", "columns, sum", "read in another order", "kept and never read"])
def test_several_calls(name: str, at_once: Callable) -> None:
    """Of one bag twice, of several bags, with other weights, and of a copy."""
    torch.manual_seed(0)
    model = Case(CASES[name]).double()
    one, other = _plan(model), enfa.make_plan(random_bits(4, seed=1), enfa.NodeMarking(), model)
    weights = {n: torch.randn_like(p) for n, p in model.named_parameters()}

    def with_other_weights(m: nn.Module, bag: enfa.Bag) -> Tensor:
        return functional_call(m, weights, (bag,)) + m(bag)

    def run() -> dict[str, Tensor | None]:
        found, both = _run(model, one, other, one), _run(model, one, call=with_other_weights)
        found |= {f"functional {k}": v for k, v in both.items()}
        used = copy.deepcopy(model)
        used(one)
        return found | {f"copy {k}": v for k, v in _run(copy.deepcopy(used), other).items()}

    found = run()
    at_once()
    _same(found, run())


def _raising(m: Case, bag: enfa.Bag) -> Tensor:
    x = m.x(bag)
    kept = m.norm(m.lin(x)), m.second(m.other(x)).relu()
    if len(m.seen) == 1:
        m.seen.append(0)
        raise ZeroDivisionError(str(kept[0].shape))
    return bag.pool(bag.pool(kept[0] * kept[1]))


@pytest.mark.parametrize("steps", [False, True], ids=["", "weights change meanwhile"])
def test_an_exception_leaves_nothing_behind(steps: bool) -> None:
    """What was called before it counts; what it left is in nothing's way, however long it is kept."""
    torch.manual_seed(0)
    model = Case(_raising).double()
    bag = _plan(model)
    model.seen.append(0)
    with pytest.raises(ZeroDivisionError) as kept:
        model(bag)
    if steps:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1)
    fresh = copy.deepcopy(model)
    model(bag).sum().backward()
    fresh(bag).sum().backward()
    if not steps:
        del kept
        assert int(model.norm.num_batches_tracked) == int(model.second.num_batches_tracked) == 2
    for a, b in zip(model.parameters(), fresh.parameters()):
        assert a.grad is None or torch.equal(a.grad, b.grad)  # type: ignore[arg-type]


def test_what_pytorch_refuses_is_refused_at_once() -> None:
    model = Case(CASES["columns, sum"]).double()
    bag = _plan(model)
    x = model.x(bag)
    for wrong in (nn.Linear(WIDTH + 1, 3).double(), nn.Linear(WIDTH, 3)):
        with pytest.raises(RuntimeError):
            wrong(x)
    bad = nn.Linear(WIDTH, 3).double()
    bad.bias = nn.Parameter(torch.zeros(2, dtype=torch.float64))
    with pytest.raises(RuntimeError):
        bad(x)
    with pytest.raises(IndexError):
        torch.cat([x, bag.propagate(model.conv, x)], 2)


def test_inference_and_evaluation(at_once: Callable) -> None:
    torch.manual_seed(0)
    model = Case(CASES["residual"]).double()
    bag, found = _plan(model), []
    for held in (True, False):
        if not held:
            at_once()
        there = copy.deepcopy(model)
        with torch.inference_mode():
            found.append({"training": there(bag).clone()})
        h = there.lin(there.x(bag))
        with torch.inference_mode():
            found[-1]["inside"] = there.norm(h).value.clone()
        found[-1] |= {"after": h.value, "evaluated": there.eval()(bag), **dict(there.named_buffers())}
        assert h.value.requires_grad
    _same(*found)  # type: ignore[arg-type]


def test_bags_are_copied_and_pickled_after_a_pass() -> None:
    model = Case(CASES["kept and never read"]).double().eval()
    bag = _plan(model)
    expected = model(bag)
    for again in (copy.deepcopy(bag), pickle.loads(pickle.dumps(bag))):
        assert torch.equal(model(again), expected)


def test_one_bag_in_two_threads() -> None:
    """300 steps of two models on one bag, one of which writes in place: as bit by bit alone."""
    torch.manual_seed(0)
    models = [Case(CASES["nn.ReLU input_of_norm"]).double(), Case(CASES["+= result"]).double()]
    bag = _plan(models[0])
    assert_as_alone(models, [bag, bag], torch.optim.SGD)


def test_only_so_many_wait_for_each_other() -> None:
    model = Case(CASES["residual"]).double()
    x = model.x(_plan(model))
    deepest = 0
    for _, act in product(range(30), (model.lin, model.norm, torch.relu)):
        x = act(x)
        deepest = max(deepest, 0 if x.held is None else x.held.depth)
    assert deepest == DEEPEST
