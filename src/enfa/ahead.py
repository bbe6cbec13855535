"""Kernels of numba, compiled side by side on the first run of an installation.

Most runs need the same two dozen kernels, which take a quarter of a minute to compile one after the other. So where they are
not kept yet, processes of their own compile them, while this one imports PyTorch; and it waits for them before it builds its
first rows. What they do not compile is compiled when it is called, as ever. ``ahead.json`` has the kernels with the types they
are called with, and the seconds each took: benchmarks/kernels.py writes it. ``ENFA_AHEAD=0`` starts no processes. Nothing here
needs PyTorch.
"""

import atexit
import hashlib
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import time
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from enfa.cache import numba_folder

__all__ = ["begin", "kernels", "parsed", "ready", "shares"]

LIST = Path(__file__).with_name("ahead.json")
PATIENCE = 120  # seconds, of which it takes a tenth
MOST = 8  # processes; the longest kernel takes a fifth of all of them
_begun: list[subprocess.Popen] = []  # by the process that _owner numbers, and not by one that is forked from it
_owner = 0
_done = False


def kernels() -> list[dict[str, Any]]:
    """Each with its ``name`` (module and function), ``types``, and ``seconds``; the longest first."""
    found: list[dict[str, Any]] = json.loads(LIST.read_text())
    return found


def _fingerprint() -> str:
    """Of all that makes numba compile anew."""
    modules = {kernel["name"].rpartition(".")[0] for kernel in kernels()}
    files = sorted(LIST.parent.joinpath(*name.split(".")).with_suffix(".py") for name in modules)
    parts = [version("numba"), sys.version, platform.machine(), _processor(), LIST.read_text()]
    parts += [f"{file} {file.stat().st_mtime_ns} {file.stat().st_size}" for file in files]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith("model name")), "")


@cache
def _mark() -> Path | None:
    """The file that marks them as compiled; None where they cannot be kept, or ``ENFA_AHEAD`` is 0."""
    folder = numba_folder()
    if folder is None or os.environ.get("ENFA_AHEAD") == "0" or _cores() < 2:
        return None
    if not sys.executable or getattr(sys, "frozen", False):  # a program that Python is built into
        return None
    if multiprocessing.parent_process() is not None or os.environ.get("LOCAL_RANK", "0") != "0":  # one of several already
        return None
    return folder / f"ahead-{_fingerprint()}"


def begin() -> None:
    """Start to compile, where nothing is there; return at once."""
    global _done, _owner
    mark = _mark()
    if _begun or _done:
        return
    if mark is None or mark.exists():
        _done = True
        return
    _owner = os.getpid()
    count = min(MOST, _cores())
    given = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(LIST.parents[1]), *given]), "ENFA_AHEAD": "0"}
    # in a folder of ours, because Python would import whatever lies in the user's
    quiet: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": mark.parent}
    atexit.register(_end)
    try:
        for share in range(count):
            _begun.append(subprocess.Popen([sys.executable, "-m", "enfa.ahead", str(share), str(count)], env=env, **quiet))
    except OSError:  # no such program, or no more processes: this one compiles what it needs
        _end()
        _begun.clear()
        _done = True


def ready() -> None:
    """Wait until they are there. Where that fails, this process compiles them, as it would have."""
    global _done
    if _done:
        return
    begin()
    if _begun and os.getpid() == _owner:
        deadline = time.monotonic() + PATIENCE
        codes, mark = [_code(process, deadline) for process in _begun], _mark()
        if not any(codes) and mark is not None:
            with suppress(OSError):  # the folder was emptied meanwhile
                mark.touch()
        _begun.clear()
    _done = True


def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _code(process: subprocess.Popen, deadline: float) -> int:
    try:
        return process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.terminate()
        return 1


def _end() -> None:
    """A run that ended before it waited leaves nothing behind."""
    for process in _begun if os.getpid() == _owner else ():
        process.terminate()


def shares(count: int) -> list[list[dict[str, Any]]]:
    """The kernels in so many parts of about the same time; all types of a kernel in one, because they are kept in one file."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for kernel in kernels():
        by_name.setdefault(kernel["name"], []).append(kernel)

    def seconds(some: list[dict[str, Any]]) -> float:
        return sum(kernel["seconds"] for kernel in some)

    found: list[list[dict[str, Any]]] = [[] for _ in range(count)]
    for some in sorted(by_name.values(), key=seconds, reverse=True):
        min(found, key=seconds).extend(some)
    return found


def parsed(given: str | list[Any]) -> Any:
    """numba's type of ``"int64"``, ``"int32[2]"`` (an array of two dimensions), ``"none"``, or ``[a named tuple, *types]``."""
    from numba import types

    if isinstance(given, list):
        return types.BaseTuple.from_types(tuple(map(parsed, given[1:])), _found(given[0]))
    name, _, dimensions = given.partition("[")
    kind = getattr(types, {"bool": "boolean"}.get(name, name))
    return types.Array(kind, int(dimensions[:-1]), "C") if dimensions else kind


def _found(name: str) -> Any:
    module, _, what = name.rpartition(".")
    return getattr(import_module(f"enfa.{module}"), what)


def main(share: int, count: int) -> None:
    for kernel in shares(count)[share]:
        _found(kernel["name"]).compile(tuple(map(parsed, kernel["types"])))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
