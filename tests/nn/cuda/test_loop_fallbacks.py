"""What cannot be captured runs eagerly, and says so once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from loops import Net, batches_of, model_of, replays_of, trained, warmed
from torch import nn
from torch.utils.checkpoint import checkpoint


class _Odd(nn.Module):
    """Does what a graph cannot do again."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.inner, self.what, self.calls = model_of(), what, 0
        self.scale = torch.ones((), dtype=torch.float64, requires_grad=True)  # no parameter

    def forward(self, bag: Any) -> Any:
        out = self.inner(bag)
        if self.what == "counts":
            self.calls += 1
        if self.what == "keeps":
            self.last = out
        if self.what == "draws":
            out = out * float(torch.rand(()) + 1)
        if self.what == "leaf":
            out = out * self.scale.to(out.device)
        return (out, 3) if self.what == "number" else out


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("counts", "changes _Odd.calls"), ("keeps", "changes _Odd.last"), ("draws", "random numbers on the CPU"),
        ("leaf", "none of its parameters"), ("number", "it returns int"), ("hook", "DSGNN .inner. has hooks"),
        ("checkpoint", "saves for its backward"),
    ],
)  # fmt: skip
def test_what_cannot_be_captured_runs_eagerly_with_one_warning(
    what: str, why: str, compiled: Any, device: str, on: Callable[..., nn.Module]
) -> None:
    model = on(_Odd(what))
    called: list[int] = []
    if what == "hook":
        model.inner.register_forward_hook(lambda *_: called.append(1))
    with pytest.warns(UserWarning, match=why) as told:
        for number, batch in enumerate(batches_of(compiled, device, 12, False), 1):
            run = (lambda b: checkpoint(model, b, use_reentrant=False)) if what == "checkpoint" else model
            out = run(batch)
            out = out[0] if what == "number" else out
            out.sum().backward()
            if what == "counts":
                assert model.calls >= number
    assert len([w for w in told if "runs eagerly" in str(w.message)]) == 1
    eager = 24 if what == "checkpoint" else 12  # which runs it twice
    assert replays_of(model).replayed == 0 and replays_of(model).eager == eager and len(called) in (0, 12)


def test_reentrant_checkpoints_are_refused_as_ever(compiled: Any, device: str, on: Callable[..., nn.Module]) -> None:
    model = on(model_of())
    batch, *_ = warmed(compiled, device, model)
    start = torch.zeros((), dtype=torch.float64, device=device, requires_grad=True)
    with pytest.raises(TypeError, match="checkpoint with use_reentrant=False"):
        checkpoint(lambda zero: model(batch) + zero, start, use_reentrant=True)


def test_what_changes_from_call_to_call_is_said(same_loop: Callable[..., Any]) -> None:
    def anneal(model: Any, step: int) -> None:
        model.scale = float(step)

    outcome = same_loop(Net, partial(trained, before=anneal), 20)
    assert outcome.replays.replayed == 0 and len(outcome.told) == 1 and "Net.scale changes from call to call" in outcome.told[0]
