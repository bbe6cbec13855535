"""Dataclasses of tensors, made again with other tensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from static_models import EVERY_MODEL, graphs_for, model_for
from torch import Tensor

import enfa
from enfa.nn.bag import make_plan
from enfa.plan.arrays import Arrays
from enfa.plan.derived.prepare import prepare
from enfa.plan.mould import Mould


@dataclass(eq=False)
class _Part(Arrays):
    one: Tensor
    name: str = "part"
    limits: tuple[tuple[int, ...], ...] = ((), (1,))
    parts: list[Any] = field(default_factory=list)
    cache: dict[str, Any] = field(default_factory=dict, init=False)


def _assert_same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, Arrays):
        _assert_same(vars(one), vars(other))
    elif isinstance(one, dict):
        assert list(one) == list(other)
        _assert_same(list(one.values()), list(other.values()))
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for a, b in zip(one, other):
            _assert_same(a, b)
    elif isinstance(one, Tensor):
        assert one.is_meta or torch.equal(one, other)
    else:
        assert one == other


@pytest.mark.parametrize("name", EVERY_MODEL)
def test_what_map_makes(name: str) -> None:
    plan = make_plan(graphs_for(name), enfa.NodeMarking(), model_for(name))
    plan = prepare(plan, plan.program.needs)
    mould = Mould(plan)
    for more in range(2):
        changed = [leaf + more for leaf in plan.leaves()]
        found = mould.filled(changed)
        new = {id(leaf): value for leaf, value in zip(plan.leaves(), changed)}
        _assert_same(found, plan.map(lambda leaf, new=new: new[id(leaf)]))
        assert all(a is b for a, b in zip(found.leaves(), changed))


def test_what_is_shared_stays_so_and_nothing_else() -> None:
    inner = _Part(torch.zeros(1))
    whole = _Part(torch.ones(1), "whole", parts=[inner, {"again": inner, "nothing": {}}])
    whole.cache["both"] = (inner, whole.one)
    mould = Mould(whole)
    first, second = (mould.filled([torch.full((1,), float(n)), torch.full((1,), n + 0.5)]) for n in (2, 3))
    for found in (first, second):
        assert found.parts[0] is found.parts[1]["again"] is found.cache["both"][0] and found.cache["both"][1] is found.one
        assert found.limits is whole.limits and (found.name, found.parts[0].name) == ("whole", "part")
    assert (float(first.one), float(first.parts[0].one), float(second.one)) == (2.0, 2.5, 3.0)
    first.cache["more"] = first.parts[0].cache["more"] = first.parts[1]["nothing"]["more"] = True
    for other in (second, whole):
        assert "more" not in other.cache and not other.parts[0].cache and not other.parts[1]["nothing"]
