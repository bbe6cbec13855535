"""Backward passes of replayed calls: in any order, as often as autograd allows, of the outputs that a loss reads."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from loops import Headed, Net, Normed, assert_close, eager_gradients, gradients, model_of, replays_of, trained, warmed
from torch import nn


def test_calls_that_wait_for_their_backward_passes(compiled: Any, device: str, on: Callable[..., nn.Module]) -> None:
    """Four places, and one more call, which runs eagerly with a warning."""
    model = on(model_of()).eval()
    batches = (warmed(compiled, device, model) * 5)[:5]
    expected = [eager_gradients(model, batch) for batch in batches]
    model.zero_grad()
    with pytest.warns(UserWarning, match="4 calls of it wait"):
        outs = [model(batch) for batch in batches]
    for out, values in zip(outs, expected):
        torch.testing.assert_close(out, values[0], rtol=1e-9, atol=1e-9)
    parameters = [p for p in model.parameters() if p.requires_grad]
    for number in (3, 0, 4, 1, 2):
        grads = torch.autograd.grad(outs[number].square().sum(), parameters, allow_unused=True)
        assert_close([g for g in grads if g is not None], expected[number][1:])
    before = replays_of(model).captured
    assert_close(gradients(model, batches[0]), expected[0])
    assert replays_of(model).captured == before == 4  # a place is free again


def test_calls_whose_results_are_dropped_keep_no_place(compiled: Any, device: str, on: Callable[..., nn.Module]) -> None:
    model = on(model_of())
    batches = warmed(compiled, device, model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for batch in batches * 3:
            out = model(batch)
    del out
    gc.collect()
    assert len(replays_of(model).places) == 2  # a result lives until the next one has its name


def test_a_second_backward_pass_is_refused_as_ever(compiled: Any, device: str, on: Callable[..., nn.Module]) -> None:
    model = on(model_of())
    batch, *_ = warmed(compiled, device, model)
    loss = model(batch).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        loss.backward()
    grads = torch.autograd.grad(model(batch).square().sum(), model.head[3].weight, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grads[0].sum().backward()


def test_activations_that_are_gone_are_refused(compiled: Any, device: str, on: Callable[..., nn.Module]) -> None:
    model = on(model_of())
    first, second, *_ = warmed(compiled, device, model)
    loss = model(first).sum()
    loss.backward(retain_graph=True)
    loss.backward(retain_graph=True)
    model(second)
    with pytest.raises(RuntimeError, match="before a later call that took its memory"):
        loss.backward()


def test_weights_that_changed_before_the_backward_pass_are_refused(
    compiled: Any, device: str, on: Callable[..., nn.Module]
) -> None:
    model = on(model_of())
    first, *_ = warmed(compiled, device, model)
    loss = model(first).sum()
    with torch.no_grad():
        model.head[3].weight.mul_(2)
    with pytest.raises(RuntimeError, match=r"Expected weights as they were .* modified by an inplace operation"):
        loss.backward()
    loss = model(first).sum()
    with torch.no_grad():
        next(model.parameters()).mul_(2)  # which autograd itself looks after
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_hooks_of_parameters_are_called_once(compiled: Any, device: str, on: Callable[..., nn.Module]) -> None:
    model, calls = on(model_of()), []
    weight = model.head[3].weight
    weight.register_hook(lambda grad: calls.append("hook") or 2 * grad)
    weight.register_post_accumulate_grad_hook(lambda p: calls.append("after"))
    batches = warmed(compiled, device, model)
    calls.clear()
    for batch in batches:
        expected = eager_gradients(model, batch)  # a copy has no hooks
        found = gradients(model, batch)
        place = 1 + [n for n, _ in model.named_parameters()].index("head.3.weight")
        torch.testing.assert_close(found.pop(place), 2 * expected.pop(place), rtol=1e-9, atol=1e-9)
        assert_close(found, expected)
    assert calls == ["hook", "after"] * len(batches)


class _Steep(Net):
    """An output whose gradient is not finite."""

    def forward(self, bag: Any) -> Any:
        h = self.hidden(bag)
        return self.head(h), (h - h).norm(dim=1).sqrt()


class _Four(Net):
    def forward(self, bag: Any) -> Any:
        h = self.hidden(bag)
        return self.head(h), self.aux(h), self.head(2 * h), self.aux(2 * h)


UNREAD: dict[str, tuple[Any, dict[str, Any]]] = {
    "weight decay": (Headed, {"optimiser": partial(torch.optim.AdamW, weight_decay=0.1), "read": lambda outs: outs[0]}),
    "not finite": (_Steep, {"read": lambda outs: outs[0]}),
}


@pytest.mark.parametrize("case", UNREAD)
def test_outputs_that_no_loss_reads_have_no_gradients(case: str, same_loop: Callable[..., Any]) -> None:
    """None, not zeros, which an optimiser with momentum or weight decay would step by."""
    make, options = UNREAD[case]
    assert same_loop(make, partial(trained, **options)).replays.replayed == 5


def test_heads_in_turn(same_loop: Callable[..., Any]) -> None:
    def loop(model: Any, every: list[Any]) -> None:
        optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
        for number, batch in enumerate(every):
            optimiser.zero_grad()
            model(batch)[number % 2].square().mean().backward()
            assert (model.aux.weight.grad is None) == (number % 2 == 0)
            optimiser.step()

    assert same_loop(Headed, loop).replays.replayed == 5


def test_more_outputs_than_are_captured(same_loop: Callable[..., Any]) -> None:
    outcome = same_loop(_Four, partial(trained, read=lambda outs: outs[0] + outs[2]))
    assert outcome.replays.replayed == 0 and "more than three outputs" in outcome.told[0]


def test_gradients_that_are_asked_for(same_loop: Callable[..., Any]) -> None:
    """Of parameters that nothing depends on there are none."""

    def loop(model: Any, every: list[Any]) -> Any:
        wanted = [model.aux.weight, model.lin.weight]
        found = [torch.autograd.grad(model(batch).square().mean(), wanted, allow_unused=True) for batch in every]
        assert all(aux is None for aux, _ in found)
        return [grad for _, grad in found]

    assert same_loop(Net, loop).replays.replayed == 5


def test_hooks_and_gradients_of_outputs(same_loop: Callable[..., Any]) -> None:
    def loop(model: Any, every: list[Any]) -> Any:
        found = []
        for batch in every:
            out = model(batch)
            out.retain_grad()
            out.register_hook(lambda grad: 2 * grad)
            out.square().mean().backward()
            found.append(out.grad)
        return found, [p.grad for p in model.parameters()]

    assert same_loop(Net, loop).replays.replayed == 5


def test_outputs_are_the_users(same_loop: Callable[..., Any]) -> None:
    """Kept over steps, and changed in their places, before the backward pass too."""

    def loop(model: Any, every: list[Any]) -> Any:
        kept = []
        for batch in every:
            out = model(batch)
            out.mul_(2).add_(1)
            out.square().mean().backward()
            kept.append(out.detach())
        with torch.no_grad():
            for batch in every:
                kept.append(model(batch).add_(1))
        return kept, [p.grad for p in model.parameters()]

    assert same_loop(Net, loop).replays.replayed == 10


def test_gradients_are_the_users(same_loop: Callable[..., Any]) -> None:
    """Those of before are kept, replaced, or added to."""

    def loop(model: Any, every: list[Any]) -> Any:
        kept = []
        for number, batch in enumerate(every):
            model(batch).square().mean().backward()
            kept += [p.grad for p in model.parameters() if p.grad is not None]
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter.grad = [None, parameter.grad.mul_(3), torch.ones_like(parameter)][number % 3]
        return kept

    assert same_loop(Net, loop).replays.replayed == 5


def test_statistics_that_another_call_changed(same_loop: Callable[..., Any]) -> None:
    """Between an evaluating forward pass and its backward pass."""

    def loop(model: Any, every: list[Any]) -> Any:
        for mode in (False, True):
            model.train(mode)
            for batch in every[:3]:
                model(batch).sum().backward()
        model.zero_grad()
        out = model.eval()(every[3])
        model.train()(every[4])
        out.square().sum().backward()
        return model.lin.weight.grad

    assert same_loop(Normed, loop).replays.replayed == 6


def test_two_calls_before_one_backward_pass_with_frozen_statistics(same_loop: Callable[..., Any]) -> None:
    """A capture in between leaves buffers alone that nothing writes: autograd would take them for changed."""

    def loop(model: Any, every: list[Any]) -> Any:
        model.norm.eval()
        (model(every[0]) + model(every[1])).sum().backward()
        return model.lin.weight.grad

    assert same_loop(Normed, loop).replays.replayed == 1


def test_a_frozen_weight_that_changed_before_the_backward_pass_is_refused(
    compiled: Any, device: str, recorded: Callable[..., Any]
) -> None:
    model: Any = recorded(Net())
    model.head.requires_grad_(False)
    first, *_ = warmed(compiled, device, model)
    out = model(first)
    with torch.no_grad():
        model.head.weight.mul_(10)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.square().sum().backward()


def test_a_loss_that_fails_in_between(same_loop: Callable[..., Any]) -> None:
    def loop(model: Any, every: list[Any]) -> Any:
        losses = []
        for number, batch in enumerate(every):
            try:
                losses += trained(model, [batch], read=lambda out, n=number: out if n % 2 else out.view(-1, 3))
            except RuntimeError:
                losses.append(torch.zeros(()))
        return [loss.cpu() for loss in losses]

    assert same_loop(Net, loop).replays.replayed == 5


class _Tied(Net):
    def __init__(self) -> None:
        super().__init__()
        self.back = nn.Linear(4, 2).double()
        self.back.weight = self.head.weight

    def forward(self, bag: Any) -> Any:
        h = self.hidden(bag)
        return self.head(h) + self.back(h.square())


def test_tied_weights_and_calls_within_calls(same_loop: Callable[..., Any]) -> None:
    assert same_loop(_Tied, trained).replays.replayed == 5

    class Twice(Net):
        """Its layer is used twice, and so is the model in one loss."""

        def forward(self, bag: Any) -> Any:
            h = self.hidden(bag)
            return self.head(h) * self.head(-h)

    def loop(model: Any, every: list[Any]) -> Any:
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
        for batch in every:
            optimiser.zero_grad()
            (model(batch) * model(batch)).sum().backward()
            optimiser.step()

    assert same_loop(Twice, loop).replays.replayed == 11
