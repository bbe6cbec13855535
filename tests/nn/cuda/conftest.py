"""Loops on a GPU, and on the CPU with stand-ins for CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from loops import alike, assert_same_loop, compiled_for
from recorded import Recorded
from rerun import Rerun
from torch import nn

import enfa
from enfa.nn.cuda import replay

DEVICES = [
    "cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU"))
]  # fmt: skip


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def on(device: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[nn.Module], nn.Module]:
    """A model on the device, in training; on the CPU with graphs that do their work again.

    For models on Rows: without a GPU their operations depend on what is in a batch, so a recording of them would be of one."""

    def put(model: nn.Module) -> nn.Module:
        there = enfa.captured(model).to(device).train()
        if device == "cpu":
            monkeypatch.setattr(replay, "recorder", lambda _: Rerun(there))
        return there

    return put


@pytest.fixture
def recorded(device: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[nn.Module], nn.Module]:
    """A model on the device, in training; on the CPU with graphs that run no Python of its. For models of plain tensors."""
    if device == "cpu":
        monkeypatch.setattr(replay, "recorder", lambda _: Recorded())
    return lambda model: enfa.captured(model).to(device).train()


@pytest.fixture(scope="session")
def compiled() -> Any:
    """Compiled graphs."""
    return compiled_for()


@pytest.fixture
def same_loop(compiled: Any, device: str, recorded: Callable[[nn.Module], nn.Module]) -> Callable[..., Any]:
    """:func:`loops.assert_same_loop` with ``count`` batches of one bucket."""

    def compare(make: Any, loop: Any, count: int = 6) -> Any:
        return assert_same_loop(make, loop, recorded, partial(alike, compiled, device, count))

    return compare
