"""What ``enfa train`` is doing, from its first second on: a status line on a terminal, a line for each part elsewhere."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Any

from rich.console import Console

from enfa.training.results.parts import NAMES

__all__ = ["Telling", "outlast_readers"]

BARS = ("compile", "buckets", "kernels", "epochs", "test")  # which have progress bars of their own on a terminal


def outlast_readers() -> None:
    """From here on a reader that goes away, such as ``head``, ends nothing: what it does not read is written nowhere."""

    def quiet(console: Console) -> None:
        console.quiet = True
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), console.file.fileno())  # where Python writes what is left, at its end

    Console.on_broken_pipe = quiet  # type: ignore[method-assign, assignment] # also those that progress bars make


class Telling:
    """Told of a part of a run, by its name, when it begins."""

    def __init__(self, console: Console) -> None:
        self.console, self._began = console, time.perf_counter()
        self._status: Any = None

    def __call__(self, name: str) -> None:
        self.stop()
        if not self.console.is_terminal:
            self.console.print(f"{time.perf_counter() - self._began:5.1f} s  {NAMES[name]}", highlight=False, soft_wrap=True)
        elif name not in BARS:
            self._status = self.console.status(f"{NAMES[name]} …")
            self._status.start()

    def stop(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None
