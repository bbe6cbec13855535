"""How long each part of a run took, and what is said as it begins."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["NAMES", "Parts"]

NAMES = {
    "import": "importing PyTorch and Lightning",
    "read": "reading the dataset",
    "compile": "compiling rows",
    "buckets": "padding batches to a few sizes",
    "kernels": "first steps: kernels are compiled and, on a GPU, steps captured",
    "epochs": "training",
    "test": "testing the best checkpoint",
}
"""The parts of a run, in order. ``kernels``: steps that were captured or ran for the first time; ``epochs``: all others."""


class Parts:
    """Seconds by the names of parts. ``say`` is told of each as it begins."""

    def __init__(self, say: Callable[[str], None] | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._say, self._told = say, set[str]()

    def begin(self, name: str) -> None:
        """Say so, once."""
        if self._say is not None and name not in self._told:
            self._say(name)
        self._told.add(name)

    def add(self, name: str, seconds: float) -> None:
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """One part, without those that are timed within it."""
        self.begin(name)
        began, within = time.perf_counter(), sum(self.seconds.values())
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - began - (sum(self.seconds.values()) - within))

    def to_dict(self) -> dict[str, float]:
        return {name: round(self.seconds[name], 2) for name in NAMES if name in self.seconds}
