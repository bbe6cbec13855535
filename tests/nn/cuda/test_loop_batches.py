"""A replayed graph sees the batch as the user left it, or is not replayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from loops import (
    compiled_for,
    loader_of,
    model_of,
    warmed,
)
from torch import nn

import enfa


def test_features_that_need_gradients(device: str, on: Callable[..., nn.Module]) -> None:
    compiled, model = compiled_for("Net"), on(model_of("Net"))
    batches = warmed(compiled, device, model)
    with pytest.warns(UserWarning, match="features of its batch need gradients"):
        for batch in batches:
            batch.x_rows.requires_grad_()
            model(batch).sum().backward()
            assert batch.x_rows.grad.abs().sum() > 0


def test_arrays_that_were_replaced(device: str, on: Callable[..., nn.Module]) -> None:
    compiled, model = compiled_for("Net"), on(model_of("Net")).eval()
    batch, other, *_ = warmed(compiled, device, model)
    before = model(batch)
    batch.x_rows.mul_(2)  # in its place: part of what is copied
    with enfa.eagerly():
        expected = model(batch)
    torch.testing.assert_close(model(batch), expected, rtol=1e-9, atol=1e-9)
    assert not torch.equal(before, expected)
    batch.x_rows = batch.x_rows * 0.5
    with pytest.warns(UserWarning, match="arrays of its batch were replaced"):
        torch.testing.assert_close(model(batch), before, rtol=1e-9, atol=1e-9)
    other.graph_attr["about"] = 2 * other.graph_attr["about"]
    assert not other.untouched()


def test_labels_may_be_replaced(compiled: Any, device: str) -> None:
    loader = loader_of(compiled, device)
    for number, batch in enumerate(loader):
        assert not batch.relabelled()
        if number == 0:
            batch.y = batch.y.double()
        else:
            batch.y.add_(1)
        assert batch.relabelled() and batch.untouched() and batch.y.dtype == (torch.int64 if number else torch.float64)
