"""A captured model is replayed as long as it is what it was: what changes is captured anew, or runs eagerly."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from loops import (
    assert_close,
    eager_gradients,
    gradients,
    model_of,
    replays_of,
    warmed,
)
from torch import nn

CHANGES: dict[str, Callable[[Any], Any]] = {
    "storage": lambda model: setattr(model.head[3].weight, "data", model.head[3].weight.data * 2),
    "a parameter": lambda model: setattr(model.head[3], "weight", nn.Parameter(model.head[3].weight.data * 2)),
    "a module": lambda model: setattr(model, "head", nn.Sequential(nn.Linear(16, 2)).to(model.head[3].weight)),
    "values": lambda model: model.load_state_dict({k: v * 2 for k, v in model.state_dict().items()}),
    "dropout": lambda model: setattr(model.layers[1].dropout, "p", 0.7),
    "frozen": lambda model: model.layers[0].requires_grad_(False),
    "evaluation": lambda model: model.eval(),
    "a part in evaluation": lambda model: model.layers[1].eval(),
    "precision": lambda model: model.float().double(),
    "copied": lambda model: copy.deepcopy(model),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_the_model_is_noticed(change: str, compiled: Any, device: str, on: Callable[..., nn.Module]) -> None:
    model = on(model_of())
    batches = warmed(compiled, device, model)
    other = CHANGES[change](model)
    model = other if change == "copied" else model
    before = replays_of(model).replayed
    for batch in batches:
        expected = eager_gradients(model, batch)
        assert_close(gradients(model, batch), expected)
    assert replays_of(model).replayed - before >= 2 and replays_of(model).captured == (
        1 if change in ("values", "copied") else 2
    )
