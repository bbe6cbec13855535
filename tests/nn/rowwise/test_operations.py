"""Every operation that Rows allow gives what it gives on every row alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from operation_cases import cases, operands, shared
from small_bag import ROWS, rows_of, small_bag
from torch import Tensor, nn

from enfa.nn.bag import Rows
from enfa.nn.rowwise import elementwise
from enfa.nn.rowwise.operations import HANDLERS

ONE = set(f"{elementwise._ONE} {elementwise._TO} neg pos abs invert zero".split())
BAG = small_bag()


METHODS = {getattr(Tensor, name): name for name in dir(Tensor) if callable(getattr(Tensor, name))}


def _spelled(func: Any) -> str:
    """torch.relu, torch.nn.functional.relu, Tensor.relu."""
    if func in METHODS:
        return f"Tensor.{METHODS[func]}"
    return f"{getattr(func, '__module__', None) or 'torch'}.{func.__name__}"


def _call(func: Any) -> Any:
    """h.relu() for Tensor.relu."""
    return (lambda first, *args, **kwargs: getattr(first, METHODS[func])(*args, **kwargs)) if func in METHODS else func


def _in_place(func: Any) -> bool:
    return HANDLERS[func][0] is elementwise.in_place


LISTED = [
    pytest.param(func, name, id=_spelled(func))
    for func, (_, name) in HANDLERS.items()
    if name not in ("batch_norm", "dropout", "CountedBatchNorm", "cuda")  # in test_exact.py
]


def _flat(found: Any) -> list[Any]:
    return list(found) if isinstance(found, (list, tuple)) else [found]


@pytest.mark.parametrize("width", [4, ROWS])
@pytest.mark.parametrize("func, name", LISTED)
def test_as_on_each_row_alone(func: Any, name: str, width: int) -> None:
    for case in cases(name, ONE, _in_place(func)):
        given, same = operands(ROWS, width), vars(shared(width))
        rows = SimpleNamespace(**{key: rows_of(BAG, value.clone()) for key, value in given.items()}, **same)
        found = _flat(case(_call(func), rows))
        alone = []
        for i in range(ROWS):
            one = {key: value[i : i + 1].clone() for key, value in given.items()}
            mine = {**same, "wide": same["b1"]}
            alone.append(_flat(case(_call(func), SimpleNamespace(**one, **mine))))
        assert len(found) == len(alone[0])
        for n, part in enumerate(found):
            expected = torch.cat([parts[n] for parts in alone])
            assert isinstance(part, Rows) and part.number == 0
            assert part.dtype == expected.dtype and part.value.shape == expected.shape
            torch.testing.assert_close(part.value, expected, rtol=1e-13, atol=1e-13)
        if _in_place(func):
            assert any(found[0] is value for value in vars(rows).values())


def test_gradients_are_those_of_each_row() -> None:
    value = operands(ROWS, 4)["h"].requires_grad_()
    h = rows_of(BAG, value)
    out = nn.functional.normalize(h.softmax(-1) * h.max(1, keepdim=True).values + h.sort(1).values, dim=1)
    (mine,) = torch.autograd.grad(out.value.square().sum() * 0.5 + out.value.sum(), value)
    other = nn.functional.normalize(value.softmax(-1) * value.max(1, keepdim=True).values + value.sort(1).values, dim=1)
    (theirs,) = torch.autograd.grad(other.square().sum() * 0.5 + other.sum(), value)
    assert torch.equal(mine, theirs)
