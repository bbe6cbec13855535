"""Gradient checkpointing: what is computed again in a backward pass is what was computed first, or is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch_geometric import nn as pyg

import enfa
from enfa import CountedBatchNorm, KeyedDropout
from enfa.plan.links import Plan
from enfa.testing import random_graphs

FORMS = pytest.mark.parametrize("reentrant", [True, False], ids=["reentrant", "not reentrant"])
KINDS = pytest.mark.parametrize("kind", ["full", "distinct"])


class Again(nn.Module):
    """A module that is checkpointed where ``reentrant`` says how."""

    reentrant: bool | None = None

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        if self.reentrant is None:
            return self.inner(x)
        return checkpoint(self.inner, x, use_reentrant=self.reentrant)


class Parts(nn.Module):
    """Two regions, and one within the other."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x))


def _inner(channels: int, out: int, dropout: float = 0.4) -> nn.Module:
    norm, drop = nn.BatchNorm1d(out), nn.Dropout(dropout)
    return nn.Sequential(nn.Linear(channels, out), norm, nn.ReLU(), drop, nn.Linear(out, out))


def _model(conv: Callable[[int, int], nn.Module], **more: object) -> nn.Module:
    torch.manual_seed(0)
    # embedded features: reentrant checkpointing takes no region whose inputs need no gradient
    return enfa.DSGNN([4], 8, 2, 3, conv, **more).double()  # type: ignore[arg-type]


def _plan(model: nn.Module, kind: str, seed: int = 1) -> Plan:
    graphs = random_graphs(4, 7, seed=seed)
    for graph in graphs:
        graph.x = (graph.x[:, :1] * 3).long().abs() % 4
    return enfa.make_plan(graphs, enfa.NodeMarking(), model.spec, kind)  # type: ignore[arg-type]


Loss = Callable[[nn.Module], Tensor]


def _trained(model: nn.Module, loss: Loss, reentrant: bool | None) -> dict[str, Tensor]:
    """Gradients of two steps, the dropouts' counters, and the loss."""
    model, found = copy.deepcopy(model), {}
    for part in model.modules():
        if isinstance(part, Again):
            part.reentrant = reentrant
    for i in range(2):
        model.zero_grad()
        torch.manual_seed(i)
        value = loss(model)
        value.backward()
        found[f"loss {i}"] = value.detach()
        found |= {f"{name} {i}": p.grad.clone() for name, p in model.named_parameters()}
    return found | {name: b for name, b in model.named_buffers() if name.endswith("step")}


def _same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-12, atol=1e-12, msg=lambda m, name=name: f"{name}: {m}")


def _conv(i: int, o: int) -> nn.Module:
    return pyg.GINConv(Again(_inner(i, o)))


@FORMS
@KINDS
@pytest.mark.parametrize("context", [None, "dss"])
def test_inside_a_conv(kind: str, reentrant: bool, context: str | None) -> None:
    torch.manual_seed(0)
    model = _model(_conv, dropout=0.3)
    if context:
        model = enfa.DSSGNN([4], 8, 2, 3, _conv, context, dropout=0.3).double()
    plan = _plan(model, kind)
    expected = _trained(model, lambda m: m(plan).square().sum(), None)
    _same(_trained(model, lambda m: m(plan).square().sum(), reentrant), expected)


@FORMS
def test_statistics_are_updated_as_often_as_pytorchs(reentrant: bool) -> None:
    model = _model(_conv)
    plan, ordinary = _plan(model, "full"), Again(nn.BatchNorm1d(3))
    for part in [ordinary, *model.modules()]:
        if isinstance(part, Again):
            part.reentrant = reentrant
    ordinary(torch.randn(5, 3, requires_grad=True)).sum().backward()
    model(plan).sum().backward()
    counted = [m for m in model.modules() if isinstance(m, CountedBatchNorm)]
    inside = [m for layer in model.layers for m in layer.conv.modules() if isinstance(m, CountedBatchNorm)]
    for norm in counted:
        again = int(ordinary.inner.num_batches_tracked) if norm in inside else 1
        assert int(norm.num_batches_tracked) == again


@FORMS
@KINDS
def test_several_passes_wait_for_their_gradients(kind: str, reentrant: bool) -> None:
    """Of two batches, and of one batch twice with other masks: each is computed again for itself."""
    model = _model(_conv, dropout=0.3)
    one, other = _plan(model, kind), _plan(model, kind, seed=2)

    def loss(m: nn.Module) -> Tensor:
        return m(one).square().sum() + m(other).square().sum() + (m(one) * m(other)[:1]).sum()

    _same(_trained(model, loss, reentrant), _trained(model, loss, None))


@FORMS
def test_backward_in_another_thread(reentrant: bool) -> None:
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

    found = _trained(model, lambda m: Elsewhere(m(plan).square().sum()), reentrant)  # type: ignore[arg-type,return-value]
    _same(found, _trained(model, lambda m: m(plan).square().sum(), None))


@FORMS
@KINDS
def test_modules_shared_between_layers(kind: str, reentrant: bool) -> None:
    shared: list[nn.Module] = []

    def conv(i: int, o: int) -> nn.Module:
        shared[:] = shared or [nn.Sequential(nn.BatchNorm1d(8), nn.Dropout(0.4))]
        return pyg.GINConv(nn.Sequential(nn.Linear(i, o), Again(shared[0])))

    model = _model(conv)
    inner = [layer.conv.conv.nn[1] for layer in model.layers]
    for again in inner:
        again.inner = inner[0].inner
    plan = _plan(model, kind)
    loss: Loss = lambda m: m(plan).square().sum()  # noqa: E731
    _same(_trained(model, loss, reentrant), _trained(model, loss, None))


@KINDS
def test_a_module_called_twice_in_a_region(kind: str) -> None:
    def conv(i: int, o: int) -> nn.Module:
        drop = nn.Dropout(0.4)
        # convert replaces children by name: one that stands in two places would become two
        twice = Twice(drop)
        return pyg.GINConv(nn.Sequential(nn.Linear(i, o), Again(twice)))

    model = _model(conv)
    plan = _plan(model, kind)
    loss: Loss = lambda m: m(plan).square().sum()  # noqa: E731
    _same(_trained(model, loss, False), _trained(model, loss, None))
    with pytest.raises(RuntimeError, match="Expected one checkpointed call to which a KeyedDropout that is computed again"):
        _trained(model, loss, True)  # a reentrant region has no name: which of the two calls it is cannot be told


class Twice(nn.Module):
    def __init__(self, drop: nn.Module) -> None:
        super().__init__()
        self.drop = drop

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(self.drop(x).sin())


@KINDS
@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
def test_a_whole_model(kind: str, twice: bool) -> None:
    model = _model(_conv, dropout=0.3)
    plan = _plan(model, kind)

    def call(m: nn.Module) -> Tensor:
        return m(plan) - 2 * m(plan) if twice else m(plan)

    found = _trained(model, lambda m: checkpoint(lambda: call(m), use_reentrant=False).square().sum(), None)
    _same(found, _trained(model, lambda m: call(m).square().sum(), None))


def test_a_region_that_goes_on_after_the_model_is_refused() -> None:
    model = _model(_conv, dropout=0.3)
    plan = _plan(model, "distinct")
    with pytest.raises(RuntimeError, match="Expected to know which rows KeyedDropout is computed again for"):
        checkpoint(lambda: model(plan).sin(), use_reentrant=False).sum().backward()


def test_masks_of_a_whole_model_in_the_reentrant_form_are_refused() -> None:
    plain, model = _model(_conv_without), _model(_conv_without, dropout=0.3)
    for m in (plain, model):
        plan, start = _plan(m, "distinct"), torch.ones((), dtype=torch.float64, requires_grad=True)
        out = checkpoint(lambda one, m=m, plan=plan: m(plan) * one, start, use_reentrant=True)
        if m is plain:
            out.square().sum().backward()
            found = {name: p.grad for name, p in m.named_parameters()}
            m.zero_grad()
            m(plan).square().sum().backward()
            _same({name: p.grad for name, p in m.named_parameters()}, found)
        else:
            with pytest.raises(RuntimeError, match=r"which rows KeyedDropout is computed again for.*use_reentrant=False\)"):
                out.square().sum().backward()


def _conv_without(i: int, o: int) -> nn.Module:
    return pyg.GINConv(_inner(i, o, 0.0))


def test_what_cannot_be_told_is_refused() -> None:
    """A reentrant region within another: its node is made in the backward pass, and leads to no layer."""
    model = _model(lambda i, o: pyg.GINConv(Again(Parts(nn.Linear(i, o), Again(_inner(o, o, 0.0))))))
    plan = _plan(model, "distinct")
    loss: Loss = lambda m: m(plan).square().sum()  # noqa: E731
    _same(_trained(model, loss, False), _trained(model, loss, None))
    with pytest.raises(RuntimeError, match="Expected to know which rows CountedBatchNorm is computed again for"):
        _trained(model, loss, True)


@FORMS
def test_modules_after_pooling_are_ordinary_ones(reentrant: bool) -> None:
    torch.manual_seed(0)
    head = nn.Sequential(nn.Linear(3, 4), CountedBatchNorm(4), KeyedDropout(0.5))
    x = torch.randn(6, 3)

    def gradients(how: bool | None) -> list[Tensor]:
        torch.manual_seed(1)
        there, again = x.clone().requires_grad_(), Again(copy.deepcopy(head))
        again.reentrant = how
        again(there).square().sum().backward()
        return [there.grad, *(p.grad for p in again.parameters())]

    for a, b in zip(gradients(reentrant), gradients(None), strict=True):
        assert torch.equal(a, b)
