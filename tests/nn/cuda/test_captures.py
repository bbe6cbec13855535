"""A captured module is the module: its class, parameters and attributes, copied and saved."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest
import torch
from loops import model_of
from static_models import model_for
from torch import nn

import enfa


def test_a_captured_module_is_the_module(compiled: Any) -> None:
    model = model_for("Net")
    there = enfa.captured(model)
    assert isinstance(there, type(model)) and enfa.captured(there) is there and type(there).__name__ == "Net"
    assert list(there.state_dict()) == list(model.state_dict()) and list(there.parameters()) == list(model.parameters())
    assert not there.eval().training and not model.training
    there.register_forward_hook(lambda *_: None)
    assert model._forward_hooks
    model._forward_hooks.clear()
    there.float()
    assert all(p.dtype == torch.float32 for p in model.parameters())
    own = model_of()
    assert enfa.captured(own) is own
    other = copy.deepcopy(there)
    assert type(other) is type(there) and next(other.parameters()) is not next(there.parameters())
    with pytest.raises(TypeError, match=r"Expected a torch.nn.Module to capture, got str"):
        enfa.captured("model")  # type: ignore[arg-type]


def test_a_captured_module_can_be_saved() -> None:
    model = enfa.captured(nn.Linear(2, 3))
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    again = torch.load(file, weights_only=False)
    assert type(again) is type(model) and torch.equal(again.weight, model.weight)


def test_a_copy_has_attributes_of_its_own() -> None:
    """As ``copy.copy`` of any module has; parameters are common to both."""
    model: Any = enfa.captured(nn.Linear(2, 3))
    other = copy.copy(model)
    other.flag = 1
    assert not hasattr(model, "flag") and other.weight is model.weight and type(other) is type(model)
