"""SIGKILL at ten places: of a worker, which the others outlive, and of the whole compile, which is then done again."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import psutil

from scale_parts.zinc import compiled, zinc

PLACES, SHARDS = 10, 20


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _started(graphs: Any, out: Path, size: int) -> Any:
    """A compile with two workers, in a process of its own."""
    process = multiprocessing.get_context("fork").Process(target=compiled, args=(graphs, str(out), size), kwargs={"workers": 2})
    process.start()
    return process


def _until(process: Any, out: Path, shards: int) -> None:
    """So many shards are there, and a moment has passed; or it has ended."""
    while process.is_alive() and len(list(out.glob("*.enfa"))) < shards:
        time.sleep(0.002)
    time.sleep(0.02)


def kills(data: Path, folder: Path, graphs: int) -> dict[str, Any]:
    """Counts how often the folder held the same bytes in the end as without a kill."""
    stream, size = zinc(str(data), graphs), -(-graphs // SHARDS)
    compiled(stream, str(folder / "undisturbed"), size, workers=2)
    expected, same, killed = _contents(folder / "undisturbed"), {"worker": 0, "whole": 0}, {"worker": 0, "whole": 0}
    for what in same:
        for place in range(PLACES):
            out = folder / "killed"
            shutil.rmtree(out, ignore_errors=True)
            process = _started(stream, out, size)
            _until(process, out, place * SHARDS // PLACES)
            workers = [child.pid for child in psutil.Process(process.pid).children()] if process.is_alive() else []
            while what == "worker" and process.is_alive() and not workers:  # which are made with the first tasks
                workers = [child.pid for child in psutil.Process(process.pid).children()]
            victim = workers[place % len(workers)] if what == "worker" and workers else process.pid
            killed[what] += process.is_alive()
            os.kill(victim, signal.SIGKILL)
            process.join()
            if what == "whole":
                assert not (out / "manifest.json").exists()
                again = _started(stream, out, size)
                again.join()
                assert again.exitcode == 0
            else:
                assert process.exitcode == 0
            same[what] += _contents(out) == expected
    return {
        "shards": SHARDS, "workers_killed": killed["worker"], "same_after_worker": same["worker"],
        "compiles_killed": killed["whole"], "same_after_compile": same["whole"],
    }  # fmt: skip
