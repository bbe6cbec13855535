"""Running a model to see what it does: afterwards everything is as it was, and what no replay would do again is refused."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from enfa.nn.cuda.boxes import put_back
from enfa.nn.cuda.watch import Watch

__all__ = ["Uncapturable", "as_it_was"]


class Uncapturable(Exception):
    """Why a model has to run eagerly."""


@contextmanager
def as_it_was(model: nn.Module) -> Iterator[None]:
    """Run a model without a trace: buffers are as they were. Refuses one that leaves another, which no replay would."""
    watch = Watch(model)
    buffers = watch.tensors + watch.loose
    kept = [b.detach().clone() for b in buffers]
    drawn, numbers, others = torch.get_rng_state(), random.getstate(), _elsewhere(watch)
    held, boxes_back = [(box, copy(box)) for box in watch.holders], watch.boxes.kept()
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in zip(buffers, kept):
                # one that nothing has written into can be part of a graph that waits for its backward pass
                if not torch.equal(buffer, value):
                    buffer.copy_(value)
        unlike = not torch.equal(torch.get_rng_state(), drawn) or random.getstate() != numbers or _elsewhere(watch, others)
        changed = "" if watch.same() else watch.changed()
        for box, before in held:
            put_back(box, before)
        boxes_back()
        torch.set_rng_state(drawn)
        random.setstate(numbers)
    if changed:
        raise Uncapturable(f"its forward changes {changed}, and a replayed graph runs no Python")
    if unlike:
        raise Uncapturable("it draws random numbers on the CPU, and a replayed graph runs no Python")


def _elsewhere(watch: Watch, before: list[Any] | None = None) -> Any:
    """The states of other generators of random numbers on the CPU: numpy's, and those that modules hold. Given the states of
    before, whether some are others; they are then as they were."""
    ways: list[tuple[Callable[[], Any], Callable[[Any], Any]]] = [(np.random.get_state, np.random.set_state)]
    for value in watch.values:
        if isinstance(value, torch.Generator):
            ways.append((value.get_state, value.set_state))
        elif isinstance(value, random.Random):
            ways.append((value.getstate, value.setstate))
        elif isinstance(value, np.random.RandomState):
            ways.append((value.get_state, value.set_state))
        elif isinstance(value, np.random.Generator):
            bits = value.bit_generator
            ways.append((partial(getattr, bits, "state"), partial(setattr, bits, "state")))
    now = [read() for read, _ in ways]
    if before is None:
        return now
    unlike = any(_text(a) != _text(b) for a, b in zip(now, before))
    for (_, write), state in zip(ways, before):
        write(state)
    return unlike


def _text(state: Any) -> str:
    if isinstance(state, tuple):
        return repr([_text(part) for part in state])
    return repr(state.tolist() if isinstance(state, (Tensor, np.ndarray)) else state)
