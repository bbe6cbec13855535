"""Kernels of numba, compiled side by side on the first run of an installation.

Most runs need the same two dozen kernels, which take a quarter of a minute to compile one after the other. So where they are
not kept yet, processes of their own compile them, while this one imports PyTorch; and it waits for them before it builds its
first rows. Keeping them in a file, and training on a GPU, needs some more, later: those of other groups, which are waited for
where files are first written or read, and where batches are first made.
What they do not compile is compiled when it is called, as ever. ``ahead.json`` has the kernels with the types they are called
with, the seconds each took, and what they are for: benchmarks/kernels.py writes it. ``ENFA_AHEAD=0`` starts no processes.
Nothing here needs PyTorch.
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
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from enfa.cache import numba_folder
from enfa.cores import cores

__all__ = ["GROUPS", "Group", "begin", "kernels", "parsed", "ready", "shares"]

LIST = Path(__file__).with_name("ahead.json")
PATIENCE = 120  # seconds, of which it takes a tenth
MOST = 8  # processes of a group; the longest kernel takes a fifth of all of the first


def kernels(group: str | None = None) -> list[dict[str, Any]]:
    """Each with its ``name`` (module and function), ``types``, ``seconds`` and ``for``, its group; the longest first."""
    found: list[dict[str, Any]] = json.loads(LIST.read_text())
    return [kernel for kernel in found if group in (None, kernel["for"])]


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


class Group:
    """Kernels that are needed together."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.begun: list[subprocess.Popen] = []  # by the process that owner numbers, and not by one that is forked from it
        self.owner, self.done = 0, False

    def mark(self) -> Path | None:
        """The file that marks them as compiled; None where they cannot be kept, or ``ENFA_AHEAD`` is 0."""
        folder = numba_folder()
        if folder is None or os.environ.get("ENFA_AHEAD") == "0" or cores() < 2:
            return None
        if not sys.executable or getattr(sys, "frozen", False):  # a program that Python is built into
            return None
        if multiprocessing.parent_process() is not None or os.environ.get("LOCAL_RANK", "0") != "0":  # one of several already
            return None
        return folder / f"ahead-{self.name}-{_fingerprint()}"

    def begin(self) -> None:
        if self.begun or self.done:
            return
        mark = self.mark()
        if mark is None or mark.exists():
            self.done = True
            return
        self.owner = os.getpid()
        count = min(MOST, cores(), len({kernel["name"] for kernel in kernels(self.name)}))
        given = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(LIST.parents[1]), *given]), "ENFA_AHEAD": "0"}
        # in a folder of ours, because Python would import whatever lies in the user's
        quiet: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL) | {"cwd": mark.parent}
        command = [sys.executable, "-m", "enfa.ahead", self.name]
        atexit.register(self.end)
        try:
            for share in range(count):
                self.begun.append(subprocess.Popen([*command, str(share), str(count)], env=env, **quiet))
        except OSError:  # no such program, or no more processes: this one compiles what it needs
            self.end()
            self.begun.clear()
            self.done = True

    def ready(self) -> None:
        if self.begun and os.getpid() == self.owner:
            deadline, mark = time.monotonic() + PATIENCE, self.mark()
            codes = [_code(process, deadline) for process in self.begun]
            if not any(codes) and mark is not None:
                with suppress(OSError):  # the folder was emptied meanwhile
                    mark.touch()
            self.begun.clear()
        self.done = True

    def end(self) -> None:
        """A run that ended before it waited leaves nothing behind."""
        for process in self.begun if os.getpid() == self.owner else ():
            process.terminate()


# finding rows; files of these; batches for captured steps; such batches of models like GIN, which are cut and not sliced
GROUPS = {name: Group(name) for name in ("rows", "file", "batches", "cut")}


def begin(*groups: str) -> None:
    """Start to compile, where nothing is there, at least what finds rows; return at once.

    Batches and what cuts them have kernels in common, which two processes must not write at the same time: the latter wins.
    """
    for name in GROUPS:
        if name == "rows" or (name in groups and not (name == "batches" and "cut" in groups)):
            GROUPS[name].begin()


def ready(*groups: str) -> None:
    """Wait until they are there. Where that fails, this process compiles them, as it would have."""
    for name in groups:
        if not GROUPS[name].done:
            GROUPS[name].ready()


def _code(process: subprocess.Popen, deadline: float) -> int:
    try:
        return process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.terminate()
        return 1


def shares(group: str, count: int) -> list[list[dict[str, Any]]]:
    """The kernels in so many parts of about the same time; all types of a kernel in one, because they are kept in one file."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for kernel in kernels(group):
        by_name.setdefault(kernel["name"], []).append(kernel)

    def seconds(some: list[dict[str, Any]]) -> float:
        return sum(kernel["seconds"] for kernel in some)

    found: list[list[dict[str, Any]]] = [[] for _ in range(count)]
    for some in sorted(by_name.values(), key=seconds, reverse=True):
        min(found, key=seconds).extend(some)
    return found


def parsed(given: str | list[Any] | dict[str, Any]) -> Any:
    """numba's type of ``"int64"``, ``"int32[2]"`` (an array of two dimensions; ``"int32[2] read"``: one that is read only;
    ``"int32[1] apart"``: one with something between its entries), ``"none"``, ``[a named tuple, *types]``, or
    ``{"fields": ..., "dimensions": ...}`` (an array of records)."""
    from numba import from_dtype, types

    if isinstance(given, dict):
        record = from_dtype(np.dtype([(name, kind) for name, kind in given["fields"]]))
        return types.Array(record, given["dimensions"], "C", aligned=False)

    if isinstance(given, list):
        return types.BaseTuple.from_types(tuple(map(parsed, given[1:])), _found(given[0]))
    name, _, rest = given.partition("[")
    kind = getattr(types, {"bool": "boolean"}.get(name, name))
    dimensions, _, how = rest.partition("]")
    return types.Array(kind, int(dimensions), "A" if "apart" in how else "C", "read" in how) if dimensions else kind


def _found(name: str) -> Any:
    module, _, what = name.rpartition(".")
    return getattr(import_module(f"enfa.{module}"), what)


def main(group: str, share: int, count: int) -> None:
    for kernel in shares(group, count)[share]:
        _found(kernel["name"]).compile(tuple(map(parsed, kernel["types"])))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
