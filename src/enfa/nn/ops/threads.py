"""Kernels of numba in as many threads as PyTorch uses."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import pairwise
from queue import SimpleQueue
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["array", "by_numba", "in_threads"]

WORTH = 1 << 17  # numbers that a thread has to read, at least: to wake one takes some 20 microseconds


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """One for each process: a forked one has none of its parent's threads."""
    return ThreadPoolExecutor(thread_name_prefix="enfa-rows")


def in_threads(runs: int, numbers: int, call: Callable[[int, int], Any]) -> None:
    """``call(begin, end)`` for parts of ``runs``, which read so many ``numbers`` in all. What is computed must be the same
    whatever the parts are."""
    threads = min(torch.get_num_threads(), runs, numbers // WORTH)
    if threads < 2:
        call(0, runs)
        return
    ends = [runs * thread // threads for thread in range(threads + 1)]
    parts = deque(pairwise(ends))
    ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def take() -> None:
        while parts:
            try:
                part = parts.popleft()
            except IndexError:  # another one was faster
                return
            try:
                call(*part)
            except BaseException as error:
                ended.put(error)
            else:
                ended.put(None)

    # No thread can be had where the main one has ended and Python waits for this one, or the system has no more: then this
    # one does all parts. They are taken, not given: a pool that fails to start a thread keeps what it was given, and may do
    # it a second time.
    with suppress(RuntimeError):
        for _ in range(threads - 1):
            _pool(os.getpid()).submit(take)
    take()
    for error in [ended.get() for _ in range(threads)]:
        if error is not None:
            raise error


def by_numba(*tensors: Tensor) -> bool:
    """Whether kernels of numba can compute on these: of float32 or float64, on the CPU, while nothing looks at operators."""
    dtype = tensors[0].dtype
    return (
        dtype in (torch.float32, torch.float64)
        and not torch.compiler.is_compiling()
        and all(type(t) in (Tensor, torch.nn.Parameter) and t.device.type == "cpu" and t.dtype == dtype for t in tensors)
    )


def array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().contiguous().numpy()
