"""Where the activations of a call lie from its forward to its backward pass."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from enfa.nn.cuda.record import Recorder

__all__ = ["Place", "Ticket"]


class Place:
    """Memory for one call at a time, from its forward to its backward pass; graphs of all buckets share it."""

    def __init__(self, pool: Any) -> None:
        self.pool, self.calls = pool, 0
        self.stream: tuple[Any, int] | None = None  # the last one used here, and its number
        self._ticket: Callable[[], Ticket | None] = lambda: None

    def free(self) -> bool:
        ticket = self._ticket()
        return ticket is None or ticket.used

    def take(self) -> Ticket:
        self.calls += 1
        ticket = Ticket(self, self.calls)
        self._ticket = weakref.ref(ticket)
        return ticket

    def follow(self, records: Recorder) -> None:
        """What comes next on the current stream comes after all that was done here."""
        number = records.stream_number()
        if self.stream is not None and number == self.stream[1]:
            return
        stream = records.stream()
        if self.stream is not None:
            stream.wait_stream(self.stream[0])
        self.stream = stream, number


class Ticket:
    """A call. Autograd keeps it as long as its backward pass may come."""

    def __init__(self, place: Place, number: int) -> None:
        self.place, self.number, self.used = place, number, False

    def check(self) -> None:
        if self.place.calls != self.number:
            raise RuntimeError(
                "Expected every backward pass of a captured model before a later call that took its memory, got it after that: "
                "do it earlier, or call the model under enfa.eagerly()"
            )
