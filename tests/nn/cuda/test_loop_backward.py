"""Backward passes of replayed calls: in any order, as often as autograd allows, of the outputs that a loss reads."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from loops import (
    assert_close,
    eager_gradients,
    gradients,
    model_of,
    replays_of,
    warmed,
)
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
