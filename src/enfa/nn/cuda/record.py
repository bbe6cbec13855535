"""Work recorded as a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, TypeVar

import torch

from enfa.nn.cuda.side_stream import streams

__all__ = ["Recorder", "recorder"]

T = TypeVar("T")
_CAPTURING = Lock()  # all captures are made on the same stream, so one thread captures at a time


class Recorder:
    """On one device. Tests put another in its place, which does the work again where this one replays a graph."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def pool(self) -> Any:
        """Memory that graphs share which never have to keep anything for each other."""
        return torch.cuda.graph_pool_handle()

    def record(self, work: Callable[[], T], pool: Any) -> tuple[Any, T]:
        """A graph, to be replayed, and what the work returned: nothing has been computed so far."""
        graph = torch.cuda.CUDAGraph()
        random = torch.cuda.default_generators[self.device.index]
        before = random.clone_state()
        try:
            # a capture that fails at its end leaves its stream the current one
            with (
                _CAPTURING,
                torch.cuda.stream(torch.cuda.current_stream(self.device)),
                # other threads (of a logger, say) may go on using the device
                torch.cuda.graph(graph, pool=pool, stream=streams(self.device)[0], capture_error_mode="thread_local"),
            ):
                result = work()
        except BaseException:
            random.graphsafe_set_state(before)  # it takes itself for being captured still, and would draw no more
            raise
        return graph, result

    @contextmanager
    def rehearsal(self) -> Iterator[None]:
        """What is computed in here draws random numbers for itself, on a stream of its own: a graph's first run in earnest."""
        random, here = torch.cuda.default_generators[self.device.index], torch.cuda.current_stream(self.device)
        before, there = random.get_state(), streams(self.device)[0]
        there.wait_stream(here)
        try:
            with torch.cuda.stream(there):
                yield
        finally:
            here.wait_stream(there)
            random.set_state(before)

    def capturing(self) -> bool:
        return torch.cuda.is_current_stream_capturing()

    def stream(self) -> Any:
        return torch.cuda.current_stream(self.device)

    def stream_number(self) -> int:
        """Of the current stream, without making an object for it."""
        return torch._C._cuda_getCurrentRawStream(self.device.index)


@cache
def recorder(device: torch.device) -> Recorder | None:
    """None where there are no graphs."""
    return Recorder(device) if device.type == "cuda" else None
