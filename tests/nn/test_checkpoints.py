"""Gradient checkpointing: what is computed again in a backward pass is what was computed first, or is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
import torch
from in_threads import assert_as_alone
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
from torch_geometric import nn as pyg

import enfa
from enfa import CountedBatchNorm
from enfa.testing import random_graphs

FORMS = pytest.mark.parametrize("reentrant", [True, False], ids=["reentrant", "not reentrant"])
KINDS = pytest.mark.parametrize("kind", ["full", "distinct"])
Loss = Callable[[nn.Module], Tensor]


class Again(nn.Module):
    """A module that is checkpointed where ``reentrant`` says how; ``saves``: of what results are kept all the same."""

    reentrant: bool | None = None
    saves: tuple[Any, ...] = ()

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *args: Any) -> Any:
        if self.reentrant is None:
            return self.inner(*args)
        if self.saves:
            kept = partial(create_selective_checkpoint_contexts, list(self.saves))
            return checkpoint(self.inner, *args, use_reentrant=False, context_fn=kept)
        return checkpoint(self.inner, *args, use_reentrant=self.reentrant)


def _inner(channels: int, out: int, dropout: float = 0.4) -> nn.Module:
    return nn.Sequential(nn.Linear(channels, out), nn.BatchNorm1d(out), nn.ReLU(), nn.Dropout(dropout), nn.Linear(out, out))


def _conv(i: int, o: int) -> nn.Module:
    return pyg.GINConv(Again(_inner(i, o)))


def _model(conv: Any, context: str | None = None, **more: Any) -> Any:
    torch.manual_seed(0)
    if context is None:
        return enfa.DSGNN([4], 8, 2, 3, conv, **more).double()
    return enfa.DSSGNN([4], 8, 2, 3, conv, context, **more).double()


def _plan(model: nn.Module, kind: str, seed: int = 1) -> enfa.Bag:
    graphs = random_graphs(4, 7, seed=seed)
    for graph in graphs:
        graph.x = (graph.x[:, :1] * 3).long().abs() % 4
    return enfa.make_plan(graphs, enfa.NodeMarking(), model, kind)


def _trained(model: nn.Module, loss: Loss, reentrant: bool | None, steps: int = 2) -> dict[str, Tensor]:
    """Losses and gradients of some steps, from the same seed each."""
    model, found = copy.deepcopy(model), {}
    for part in model.modules():
        if isinstance(part, Again):
            part.reentrant = reentrant
    for i in range(steps):
        model.zero_grad()
        torch.manual_seed(i)
        value = loss(model)
        value.backward()
        found[f"loss {i}"] = value.detach()
        found |= {f"{name} {i}": p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    return found


def _same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-12, atol=1e-12, msg=lambda m, name=name: f"{name}: {m}")


def _masked(model: nn.Module, plan: enfa.Bag) -> bool:
    """Whether dropout does anything: two seeds, two losses."""
    torch.manual_seed(0)
    one = model(plan)
    torch.manual_seed(1)
    return not torch.allclose(one, model(plan))


@KINDS
@pytest.mark.parametrize("context", [None, "dss"])
def test_inside_a_conv(kind: str, context: str | None) -> None:
    model = _model(_conv, context, dropout=0.3)
    plan = _plan(model, kind)
    loss: Loss = lambda m: m(plan).square().sum()  # noqa: E731
    assert _masked(model, plan)
    _same(_trained(model, loss, False), _trained(model, loss, None))


@KINDS
@pytest.mark.parametrize("context", [None, "dss", "mpnn"])
@pytest.mark.parametrize("residual", [False, True])
def test_layers(kind: str, context: str | None, residual: bool) -> None:
    """A layer is given Rows of another, held back or not; a residual connection reads them there and outside."""
    model = _model("gin", context, dropout=0.3, residual=residual, jk="concat")
    model.layers = nn.ModuleList(Again(layer) for layer in model.layers)
    plan = _plan(model, kind)
    loss: Loss = lambda m: m(plan).square().sum()  # noqa: E731
    _same(_trained(model, loss, False), _trained(model, loss, None))


class Held(nn.Module):
    """A region that begins with what is held back outside of it, and returns what would be held back."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.embed, self.norm, self.other = nn.Linear(2, 6), nn.BatchNorm1d(6), nn.BatchNorm1d(6)
        self.lin, self.conv = nn.Linear(6, 6), pyg.GINConv(nn.Linear(6, 6))
        self.how, self.again = how, Again(_Region(self.norm, self.lin, how))

    def forward(self, bag: enfa.Bag) -> Tensor:
        h = self.embed(torch.cat([bag.x.float().to(self.lin.weight.dtype), bag.mark], 1))
        if "norm outside" in self.how:
            h = self.other(h)
        if "conv" in self.how:
            h = torch.cat([h[:, :3], bag.propagate(self.conv, h)[:, :3]], 1)
        out = self.again(h)
        out = self.other(out).relu()
        return bag.pool(bag.pool(out + h if "read again" in self.how else out), "mean")


class _Region(nn.Module):
    def __init__(self, norm: nn.Module, lin: nn.Module, how: str) -> None:
        super().__init__()
        self.norm, self.lin, self.how = norm, lin, how

    def forward(self, h: Any) -> Any:
        out = h.relu() if "relu" in self.how else self.norm(h)
        if "inside" in self.how:
            out = out + h
        return self.lin(out).tanh() if "tanh" in self.how else self.lin(out)


REGIONS = [
    "norm", "relu", "norm outside, relu", "norm, inside", "norm outside, norm, inside, read again", "relu, read again",
    "conv, relu",
]  # fmt: skip


@KINDS
@pytest.mark.parametrize("how", REGIONS)
def test_what_is_held_back_outside(kind: str, how: str) -> None:
    torch.manual_seed(0)
    model = Held(how).double()
    plan = _plan(model, kind)
    loss: Loss = lambda m: m(plan).square().sum()  # noqa: E731
    _same(_trained(model, loss, False), _trained(model, loss, None))


@KINDS
@pytest.mark.parametrize("how", REGIONS)
def test_what_is_held_back_outside_of_a_region_that_keeps_some_results(kind: str, how: str) -> None:
    """They are told apart by the order of the calls, and a linear from outside is called once."""
    torch.manual_seed(0)
    model = Held(f"{how}, tanh").double()
    model.again.saves = torch.ops.aten.addmm.default, torch.ops.aten.mm.default
    plan = _plan(model, kind)
    loss: Loss = lambda m: m(plan).square().sum()  # noqa: E731
    _same(_trained(model, loss, False), _trained(model, loss, None))


def test_statistics_are_updated_as_often_as_pytorchs() -> None:
    """Computed again, they are updated again, where PyTorch's are: also where the norm is the last of a region."""
    norms = CountedBatchNorm, nn.BatchNorm1d
    model = _model(lambda i, o: pyg.GINConv(nn.Sequential(nn.Linear(i, o), *(Again(norm(o)) for norm in norms))))
    plan, ordinary = _plan(model, "full"), Again(nn.BatchNorm1d(3))
    for part in [ordinary, *model.modules()]:
        if isinstance(part, Again):
            part.reentrant = False
    ordinary(torch.randn(5, 3, requires_grad=True)).sum().backward()
    model(plan).sum().backward()
    inside = {id(m.inner) for m in model.modules() if isinstance(m, Again)}
    counted = [m for m in model.modules() if isinstance(m, nn.BatchNorm1d)]
    assert len(inside) == 6 and len(counted) == 9
    for norm in counted:
        again = int(ordinary.inner.num_batches_tracked) if id(norm) in inside else 1
        assert int(norm.num_batches_tracked) == again


@KINDS
def test_running_statistics_are_pytorchs(kind: str) -> None:
    """Mean and variance after one pass that is computed again, against PyTorch's norm on every row of the full plan."""
    norm, x = nn.BatchNorm1d(2), torch.randn(6, 2)
    expected = Again(copy.deepcopy(norm))
    expected.reentrant = False

    class Normed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding.from_pretrained(x[:4], freeze=False)
            self.again = Again(copy.deepcopy(norm))
            self.again.reentrant = False

        def forward(self, bag: enfa.Bag) -> Tensor:
            return bag.pool(bag.pool(self.again(self.embed(bag.x[:, 0]))))

    model = Normed()
    plan, full = _plan(model, kind), _plan(model, "full")
    model(plan).sum().backward()
    expected(model.embed(full.x.value[:, 0])).sum().backward()
    for a, b in zip(model.again.buffers(), expected.buffers(), strict=True):
        torch.testing.assert_close(a, b)


@KINDS
def test_several_passes_wait_for_their_gradients(kind: str) -> None:
    """Of two batches, and of one batch twice with other masks: each is computed again for itself."""
    model = _model(_conv, dropout=0.3)
    one, other = _plan(model, kind), _plan(model, kind, seed=2)

    def loss(m: nn.Module) -> Tensor:
        return m(one).square().sum() + m(other).square().sum() + (m(one) * m(other)[:1]).sum()

    _same(_trained(model, loss, False), _trained(model, loss, None))


@KINDS
@pytest.mark.parametrize("whole", [False, True], ids=["convs", "model"])
def test_gradients_add_up_over_batches(kind: str, whole: bool) -> None:
    model = _model(_conv, dropout=0.3)
    plans = [_plan(model, kind, seed) for seed in (1, 2, 3)]

    def loss(again: bool) -> Loss:
        def of(m: nn.Module) -> Tensor:
            *losses, last = [
                (checkpoint(m, plan, use_reentrant=False) if again and whole else m(plan)).square().sum() for plan in plans
            ]
            for one in losses:
                one.backward()
            return last

        return of

    _same(_trained(model, loss(True), None if whole else False), _trained(model, loss(False), None))


def test_backward_in_another_thread() -> None:
    """As a GPU's backward passes are, which run in threads of their own."""
    model = _model(_conv, dropout=0.3)
    plan = _plan(model, "distinct")

    class Elsewhere:
        def __init__(self, value: Tensor) -> None:
            self.value = value

        def backward(self) -> None:
            with ThreadPoolExecutor(1) as thread:
                thread.submit(self.value.backward).result()

        def detach(self) -> Tensor:
            return self.value.detach()

    found = _trained(model, lambda m: Elsewhere(m(plan).square().sum()), False)  # type: ignore[arg-type,return-value]
    _same(found, _trained(model, lambda m: m(plan).square().sum(), None))


@KINDS
def test_modules_shared_between_layers(kind: str) -> None:
    shared: list[nn.Module] = []

    def conv(i: int, o: int) -> nn.Module:
        shared[:] = shared or [nn.Sequential(nn.BatchNorm1d(8), nn.Dropout(0.4))]
        return pyg.GINConv(nn.Sequential(nn.Linear(i, o), Again(shared[0])))

    model = _model(conv)
    assert len({id(layer.conv.nn[1].inner) for layer in model.layers}) == 1
    plan = _plan(model, kind)
    loss: Loss = lambda m: m(plan).square().sum()  # noqa: E731
    _same(_trained(model, loss, False), _trained(model, loss, None))


class Twice(nn.Module):
    def __init__(self, drop: nn.Module) -> None:
        super().__init__()
        self.drop = drop

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(self.drop(x).sin())


@KINDS
def test_a_module_called_twice_in_a_region(kind: str) -> None:
    model = _model(lambda i, o: pyg.GINConv(nn.Sequential(nn.Linear(i, o), Again(Twice(nn.Dropout(0.4))))))
    plan = _plan(model, kind)
    loss: Loss = lambda m: m(plan).square().sum()  # noqa: E731
    _same(_trained(model, loss, False), _trained(model, loss, None))


def test_a_region_within_another() -> None:
    model = _model(lambda i, o: pyg.GINConv(Again(nn.Sequential(nn.Linear(i, o), Again(_inner(o, o)), nn.Tanh()))))
    plan = _plan(model, "distinct")
    loss: Loss = lambda m: m(plan).square().sum()  # noqa: E731
    _same(_trained(model, loss, False), _trained(model, loss, None))


@KINDS
@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
@pytest.mark.parametrize("context", [None, "dss"])
def test_a_whole_model(kind: str, twice: bool, context: str | None) -> None:
    """And what comes after it."""
    model = _model(_conv, context, dropout=0.3)
    plan = _plan(model, kind)

    def call(m: nn.Module) -> Tensor:
        return m(plan) - 2 * m(plan) if twice else m(plan)

    expected = _trained(model, lambda m: call(m).sin().square().sum(), None)
    _same(_trained(model, lambda m: checkpoint(lambda: call(m).sin(), use_reentrant=False).square().sum(), None), expected)
    if not twice:
        direct = _trained(model, lambda m: checkpoint(m, plan, use_reentrant=False).sin().square().sum(), None)
        _same(direct, expected)


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
def test_the_reentrant_form_is_refused() -> None:
    """It runs parts inside of an autograd.Function, which sees no tensor in Rows."""
    message = "Expected tensors inside a torch.autograd.Function, got Rows, .*: checkpoint with use_reentrant=False"
    model = _model(_conv)
    plan = _plan(model, "distinct")
    for part in model.modules():
        if isinstance(part, Again):
            part.reentrant = True
    with pytest.raises(TypeError, match=message):
        model(plan)
    start = torch.ones((), dtype=torch.float64, requires_grad=True)
    other = _model("gin", dropout=0.3)
    plan = _plan(other, "distinct")
    with pytest.raises(TypeError, match=message):
        checkpoint(lambda one: other(plan) * one, start, use_reentrant=True)
    with pytest.raises(TypeError, match=message):
        checkpoint(other, plan, use_reentrant=True)


def test_two_threads_with_two_models() -> None:
    """40 steps each, as bit by bit alone. Dropout draws from PyTorch's one generator, so it is off here."""

    def conv(i: int, o: int) -> nn.Module:
        return pyg.GINConv(Again(_inner(i, o, 0.0)))

    models = [_model(conv), _model("gin", "dss")]
    models[1].layers = nn.ModuleList(Again(layer) for layer in models[1].layers)
    for part in [*models[0].modules(), *models[1].modules()]:
        if isinstance(part, Again):
            part.reentrant = False
    assert_as_alone(models, [_plan(model, "distinct") for model in models], torch.optim.Adam, steps=40)


@FORMS
def test_modules_after_pooling_are_ordinary_ones(reentrant: bool) -> None:
    torch.manual_seed(0)
    head = nn.Sequential(nn.Linear(3, 4), CountedBatchNorm(4), nn.Dropout(0.5))
    x = torch.randn(6, 3)

    def gradients(how: bool | None) -> list[Tensor]:
        torch.manual_seed(1)
        there, again = x.clone().requires_grad_(), Again(copy.deepcopy(head))
        again.reentrant = how
        again(there).square().sum().backward()
        return [there.grad, *(p.grad for p in again.parameters())]

    for a, b in zip(gradients(reentrant), gradients(None), strict=True):
        assert torch.equal(a, b)
