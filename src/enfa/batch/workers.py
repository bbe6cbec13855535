"""Processes that work ahead: a task is three numbers, its result one, and everything large lies in shared memory."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import struct
import traceback
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["Workers"]

Task = tuple[int, int, int]
_TASK, _RESULT = struct.Struct("qqq"), struct.Struct("q")
_OPEN: set[int] = set()  # the main process's ends of all pipes, of which every fork gets copies
_FAILED = -(2**63)  # then the length of a traceback, and the traceback


def _read(pipe: int, size: int) -> bytes:
    """Exactly so many bytes; fewer where the other end has gone."""
    found = os.read(pipe, size)
    while 0 < len(found) < size:
        more = os.read(pipe, size - len(found))
        if not more:
            break
        found += more
    return found


def _serve(work: Callable[..., int], tasks: int, results: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the main process's affair: it ends us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a trainer may have put something else there
    for pipe in _OPEN:  # with these kept open, no process would ever hear that the main one has closed them
        os.close(pipe)
    # what the main process had on a GPU, and has dropped without collecting it yet, must not be taken apart here
    gc.freeze()
    gc.set_threshold(100_000)  # a batch is thousands of small objects and no cycle
    torch.set_num_threads(1)
    try:
        while len(message := _read(tasks, _TASK.size)) == _TASK.size:
            try:
                os.write(results, _RESULT.pack(work(*_TASK.unpack(message))))
            except Exception:
                text = traceback.format_exc().encode()[-32768:]
                os.write(results, _RESULT.pack(_FAILED) + _RESULT.pack(len(text)) + text)
    except BrokenPipeError:
        pass


class Workers:
    """``count`` forked processes that run ``work(*task)``. Task n goes to process n modulo ``count``, in order."""

    def __init__(self, count: int, work: Callable[..., int]) -> None:
        self._pipes: list[tuple[int, int]] = []  # ours: tasks out, results in
        self._given = self._taken = 0
        context: Any = multiprocessing.get_context("fork")
        self.processes = []
        for _ in range(count):
            (tasks, ours), (mine, results) = os.pipe(), os.pipe()
            _OPEN.update((ours, mine))
            process = context.Process(target=_serve, args=(work, tasks, results), daemon=True)
            process.start()
            os.close(tasks)
            os.close(results)
            self._pipes.append((ours, mine))
            self.processes.append(process)

    @property
    def waiting(self) -> int:
        """Tasks whose results have not been taken."""
        return self._given - self._taken

    def give(self, task: Task) -> None:
        os.write(self._pipes[self._given % len(self._pipes)][0], _TASK.pack(*task))
        self._given += 1

    def take(self) -> int:
        """The result of the oldest task, when it is there."""
        worker = self._taken % len(self._pipes)
        self._taken += 1
        message = _read(self._pipes[worker][1], _RESULT.size)
        if len(message) < _RESULT.size:
            self.processes[worker].join(5)
            code = self.processes[worker].exitcode
            raise RuntimeError(f"A process that makes batches ended (exit code {code}): is there too little memory?")
        (result,) = _RESULT.unpack(message)
        if result == _FAILED:
            (size,) = _RESULT.unpack(_read(self._pipes[worker][1], _RESULT.size))
            text = _read(self._pipes[worker][1], size).decode(errors="replace")
            raise RuntimeError(f"A process that makes batches failed:\n{text}")
        return result

    def close(self) -> None:
        """Let the processes end. They finish what they are at."""
        for pair in self._pipes:
            for pipe in pair:
                _OPEN.discard(pipe)
                os.close(pipe)
        self._pipes = []
        for process in self.processes:
            process.join(5)
            if process.is_alive():
                process.terminate()
        self.processes = []

    def __del__(self) -> None:
        self.close()
