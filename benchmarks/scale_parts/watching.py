"""Running something in a process of its own, and watching what it and its children take."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil


def _memory(process: psutil.Process) -> int:
    """Bytes of a process, its share of what several have in common (Linux); elsewhere all that it has."""
    full = process.memory_full_info()
    return getattr(full, "pss", None) or full.rss


def _cpu(process: psutil.Process) -> float:
    """CPU seconds of a process and of those children of its own that have ended."""
    return sum(process.cpu_times()[:4])


def taken(pid: int, what: Callable[[psutil.Process], float]) -> float:
    """The sum over a process and all its children."""
    total = 0.0
    try:
        one = psutil.Process(pid)
        for process in (one, *one.children(recursive=True)):
            try:
                total += what(process)
            except psutil.Error:  # it has just ended
                continue
    except psutil.Error:
        pass
    return total


def memory_of(pid: int) -> int:
    """Bytes of a process and all its children."""
    return int(taken(pid, _memory))


def watched(work: Callable[..., Any], *args: Any) -> tuple[dict[str, float], list[tuple[float, float]]]:
    """Seconds and the highest memory of ``work(*args)`` in a fresh process, sampled four times a second (adding up a process's
    pages takes 20 ms of a core); and (time of day, CPU seconds by then) at every sample."""
    process = multiprocessing.get_context("spawn").Process(target=_timed, args=(work, args, (times := _queue())))
    process.start()
    peak, clock = 0, [(time.time(), 0.0)]
    while process.is_alive():
        peak = max(peak, memory_of(process.pid or 0))
        clock.append((time.time(), max(clock[-1][1], taken(process.pid or 0, _cpu))))
        time.sleep(0.25)
    process.join()
    if process.exitcode != 0:
        raise RuntimeError(f"{getattr(work, '__name__', work)} ended with code {process.exitcode}")
    return {**times.get(), "peak_gib": peak / 2**30}, clock


def _queue() -> Any:
    return multiprocessing.get_context("spawn").Queue()


def _timed(work: Callable[..., Any], args: tuple, times: Any) -> None:
    import resource

    start = time.perf_counter()
    work(*args)
    seconds = time.perf_counter() - start
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    times.put({"seconds": seconds, "cpu_s": sum(one.ru_utime + one.ru_stime for one in used)})


def rates(
    folder: Path, graphs: dict[str, int], windows: int, clock: list[tuple[float, float]]
) -> tuple[list[float], list[float]]:
    """Graphs per second and per CPU second from the first shard to the last, as their files were written, in so many windows.
    What else the machine does lowers the first and hardly the second."""
    done = np.sort([(folder / name).stat().st_mtime for name in graphs])
    used = np.interp(done, *zip(*clock, strict=True))
    size = max(graphs.values())
    cuts = np.unique(np.linspace(0, len(done) - 1, windows + 1).round().astype(int))
    found = [size * np.diff(cuts) / np.maximum(np.diff(each[cuts]), 1e-9) for each in (done, used)]
    return found[0].round(1).tolist(), found[1].round(1).tolist()
