"""Peak memory of one step, and what there is for it."""

import os
from collections.abc import Callable
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

__all__ = ["does_not_fit", "estimate", "free_bytes", "peak_bytes"]


def peak_bytes(step: Callable[[], object], device: str) -> int:
    """Most bytes of tensors that a step holds at once, beside what it was given.

    On a GPU the caching allocator's count, on a CPU a running sum over the profiler's record of every allocation:
    unlike the resident size of the process it is the same each time.
    """
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # it reports its start and stop on stderr otherwise
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        step()
    events = [e for e in record.profiler.kineto_results.events() if e.name() == "[memory]"]  # type: ignore[union-attr]
    held = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def estimate(rows: int, width: int, layers: int, context: bool) -> int:
    """Bytes that a step on so many rows per layer will hold, before anything is built.

    Measured: about six float32 tensors of all rows are kept per layer for the backward pass, seven with a context.
    """
    return rows * width * 4 * layers * (7 if context else 6)


def does_not_fit(error: BaseException) -> bool:
    """Whether an error means that memory ran out."""
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or (
        isinstance(error, RuntimeError) and ("out of memory" in str(error) or "can't allocate memory" in str(error))
    )


def free_bytes(device: str) -> int:
    """Memory that a step may take: four fifths of what is free."""
    if device == "cuda":
        return int(0.8 * torch.cuda.mem_get_info()[0])
    info = Path("/proc/meminfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("MemAvailable"):
                return int(0.8 * 1024 * int(line.split()[1]))
    return 8 << 30
