"""Where a captured model finds the numbers that its dropout masks are drawn by: in memory that never moves.

They are drawn on the CPU before every replay, by the generator and in the order in which an eager call draws them, so the masks
are the same, and checkpointing and seeds work as they do without a graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local

import torch
from torch import Tensor

from enfa.nn.ops.saved import saving_is_watched

__all__ = ["Seeds", "drawn", "given", "seeded"]

MOST = 256


def drawn() -> int:
    return int(torch.randint(2**62, ()))


class Seeds:
    """``count``: how many a call of the model takes."""

    def __init__(self, device: torch.device) -> None:
        self._places = list(torch.zeros(MOST, dtype=torch.int64, device=device))
        self.count = 0

    def next(self) -> Tensor:
        if saving_is_watched():
            raise RuntimeError("it checkpoints dropout, whose masks a recomputation would draw anew")
        if self.count == MOST:
            raise RuntimeError(f"Expected at most {MOST} calls of dropout on Rows in a captured model, got more")
        self.count += 1
        return self._places[self.count - 1]

    def draw(self) -> None:
        for place in self._places[: self.count]:
            place.fill_(drawn())


class _Current(local):
    seeds: Seeds | None = None


_current = _Current()


@contextmanager
def seeded(seeds: Seeds) -> Iterator[None]:
    """Dropout on Rows in here takes these numbers, from the first on."""
    before, _current.seeds, seeds.count = _current.seeds, seeds, 0
    try:
        yield
    finally:
        _current.seeds = before


def given() -> Tensor | None:
    """The next number, in a model that is being captured."""
    return None if _current.seeds is None else _current.seeds.next()
