"""Dataclasses of tensors, walked as a whole."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor

from enfa.plan.arrays import Arrays, Places


@dataclass(eq=False)
class _Pair(Arrays):
    one: Tensor
    other: Tensor | None
    parts: list[Any] = field(default_factory=list)
    cache: dict[str, Any] = field(default_factory=dict, init=False)


def _pair(first: int, other: bool = False, key: str = "made") -> _Pair:
    one = torch.full((2,), first)
    found = _Pair(one, one + 1 if other else None, [_Pair(one, one + 2), torch.empty(3, device="meta")])
    found.cache[key] = (one + 3,)
    return found


def test_the_same_places_of_another_value() -> None:
    known, other = _pair(0), _pair(10)
    found = Places(known).tensors(other)
    assert found is not None and [int(t[0]) for t in found] == [int(t[0]) for t in other.tensors()] == [10, 12, 13]
    last = known.tensors()[-1]
    (alone,) = Places(known, {id(last)}).tensors(other) or []
    assert int(alone[0]) == 13


def test_a_value_that_is_made_otherwise() -> None:
    places = Places(_pair(0))
    assert places.tensors(_pair(1, other=True)) is None
    assert places.tensors(_pair(1, key="other")) is None
    assert Places(_pair(0, other=True)).tensors(_pair(1)) is None


def test_arrays_move_to_a_device_and_to_no_dtype() -> None:
    assert [int(t[0]) for t in _pair(1).to(torch.device("cpu")).tensors()] == [1, 3, 4]
    with pytest.raises(TypeError, match=r"^Expected a device to move a plan to, got torch.float64: make the plan with a model"):
        _pair(0).to(torch.float64)


def test_walks_leave_nothing_to_the_garbage_collector() -> None:
    value = _pair(0)
    gone = weakref.ref(value.parts[0].other)
    gc.disable()
    try:
        value.tensors()
        value.to("cpu")
        del value
        assert gone() is None
    finally:
        gc.enable()
