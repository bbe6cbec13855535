"""Running something in a process of its own, and watching what it and its children take."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil


def _memory(process: psutil.Process) -> int:
    """Bytes of a process, its share of what several have in common (Linux); elsewhere all that it has."""
    full = process.memory_full_info()
    return getattr(full, "pss", None) or full.rss


def memory_of(pid: int) -> int:
    """Bytes of a process and all its children."""
    total = 0
    try:
        one = psutil.Process(pid)
        for process in (one, *one.children(recursive=True)):
            try:
                total += _memory(process)
            except psutil.Error:  # it has just ended
                continue
    except psutil.Error:
        pass
    return total


def watched(work: Callable[..., Any], *args: Any) -> dict[str, float]:
    """Seconds and the highest memory of ``work(*args)`` in a fresh process, sampled ten times a second."""
    process = multiprocessing.get_context("spawn").Process(target=_timed, args=(work, args, (times := _queue())))
    process.start()
    peak = 0
    while process.is_alive():
        peak = max(peak, memory_of(process.pid or 0))
        time.sleep(0.1)
    process.join()
    if process.exitcode != 0:
        raise RuntimeError(f"{getattr(work, '__name__', work)} ended with code {process.exitcode}")
    return {**times.get(), "peak_gib": peak / 2**30}


def _queue() -> Any:
    return multiprocessing.get_context("spawn").Queue()


def _timed(work: Callable[..., Any], args: tuple, times: Any) -> None:
    import resource

    start = time.perf_counter()
    work(*args)
    seconds = time.perf_counter() - start
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    times.put({"seconds": seconds, "cpu_s": sum(one.ru_utime + one.ru_stime for one in used)})


def rates(folder: Path, graphs: dict[str, int], windows: int) -> list[float]:
    """Graphs per second from the first shard to the last, as their files were written, in so many windows."""
    done = sorted((folder / name).stat().st_mtime for name in graphs)
    size = max(graphs.values())
    cuts = [round(i * (len(done) - 1) / windows) for i in range(windows + 1)]
    return [round(size * (b - a) / max(done[b] - done[a], 1e-9), 1) for a, b in pairwise(cuts) if b > a]
