"""Processes that work ahead: a task is two numbers, its result one, and everything large lies in shared memory."""

import gc
import multiprocessing
import multiprocessing.connection
import os
import select
import signal
import struct
import traceback
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["Workers"]

Task = tuple[int, int]
_PLACE = struct.Struct("q")
_TASK = struct.Struct("qqq")  # its number, and the task
_RESULT = struct.Struct("qqqq")  # number of the task, place, result, length of the traceback that follows
_OPEN: set[int] = set()  # the main process's ends of all pipes, of which every fork gets copies


def _read(pipe: int, size: int) -> bytes:
    """Exactly so many bytes; fewer where the other end has gone."""
    found = os.read(pipe, size)
    while 0 < len(found) < size:
        more = os.read(pipe, size - len(found))
        if not more:
            break
        found += more
    return found


def _serve(work: Callable[..., int], places: int, tasks: int, results: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the main process's affair: it ends us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a trainer may have put something else there
    for pipe in _OPEN:  # with these kept open, no process would ever hear that the main one has closed them
        os.close(pipe)
    # what the main process had on a GPU, and has dropped without collecting it yet, must not be taken apart here
    gc.freeze()
    gc.set_threshold(100_000)  # a batch is thousands of small objects and no cycle
    torch.set_num_threads(1)
    try:
        # Tasks are written whole and all of one size, and a pipe serves one reader after the other: each gets a whole one.
        while len(place := os.read(places, _PLACE.size)) and len(message := os.read(tasks, _TASK.size)) == _TASK.size:
            (at,), (number, *task) = _PLACE.unpack(place), _TASK.unpack(message)
            text, result = b"", 0
            try:
                result = work(*task, at)
            except Exception:  # its end: only what fits into a pipe at once arrives in one piece
                text = traceback.format_exc().encode()[_RESULT.size - select.PIPE_BUF :]
            os.write(results, _RESULT.pack(number, at, result, len(text)) + text)
    except BrokenPipeError:
        pass


class Workers:
    """``count`` forked processes that run ``work(*task, place)``. One that is free takes the next task.

    A place is where the large part of a result goes. Place p is written by process p modulo ``count`` alone, because memory is
    slow when a process first touches it; so a process takes a task when one of its places is free.
    """

    def __init__(self, count: int, work: Callable[..., int]) -> None:
        self.processes: list[Any] = []
        self._owner = os.getpid()
        self._given = self._taken = 0
        self._early: dict[int, tuple[int, int, str]] = {}  # by number of the task: results that others came before
        context: Any = multiprocessing.get_context("fork")
        (tasks, self._tasks), (self._results, results) = os.pipe(), os.pipe()
        _OPEN.update((self._tasks, self._results))
        self._places: list[int] = []
        # one that ends is noticed, although the others go on
        self._news = select.poll()
        self._news.register(self._results, select.POLLIN)
        for _ in range(count):
            places, ours = os.pipe()
            _OPEN.add(ours)
            process = context.Process(target=_serve, args=(work, places, tasks, results), daemon=True)
            process.start()
            os.close(places)
            self._places.append(ours)
            self.processes.append(process)
            self._news.register(process.sentinel, select.POLLIN)
        os.close(tasks)
        os.close(results)

    @property
    def waiting(self) -> int:
        """Tasks whose results have not been taken."""
        return self._given - self._taken

    def free(self, place: int) -> None:
        """Let a place be written. None may be before this was said."""
        self._write(self._places[place % len(self._places)], _PLACE.pack(place))

    def give(self, task: Task) -> None:
        self._write(self._tasks, _TASK.pack(self._given, *task))
        self._given += 1

    def take(self) -> tuple[int, int]:
        """The result of the oldest task, when it is there, and the place, which is not free any more."""
        while self._taken not in self._early:
            self._hear()
        result, place, text = self._early.pop(self._taken)
        self._taken += 1
        if text:
            self.free(place)
            raise RuntimeError(f"A process that makes batches failed:\n{text}")
        return result, place

    def _hear(self) -> None:
        """One result more."""
        message = b""
        if self._results in dict(self._news.poll()):
            message = _read(self._results, _RESULT.size)
        if len(message) < _RESULT.size:  # no result is there, or will be
            raise self._ended()
        number, place, result, size = _RESULT.unpack(message)
        self._early[number] = result, place, _read(self._results, size).decode(errors="replace") if size else ""

    def _write(self, pipe: int, message: bytes) -> None:
        try:
            os.write(pipe, message)
        except BrokenPipeError:
            raise self._ended() from None

    def _ended(self) -> RuntimeError:
        gone = multiprocessing.connection.wait([p.sentinel for p in self.processes], 5)
        codes = []
        for process in self.processes:
            if process.sentinel in gone:
                process.join(5)
                codes.append(process.exitcode)
        code = ", ".join(str(c) for c in codes)
        return RuntimeError(f"A process that makes batches ended (exit code {code}): is there too little memory?")

    def close(self) -> None:
        """End the processes, whatever they are at: they share nothing but the ring, whose contents are not used again."""
        if not self.processes or os.getpid() != self._owner:  # those of a process that this one was forked from are its own
            return
        for pipe in (self._tasks, self._results, *self._places):
            _OPEN.discard(pipe)
            os.close(pipe)
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.join(5)
        self.processes = []

    def __del__(self) -> None:
        self.close()
