"""A rehearsal: launches whose kernels are compiled, by threads beside each other, and which do nothing else.

A step runs some forty kernels, and each is compiled when it is launched for the first time, while everything else waits: half a
minute on the first run of a model. Which kernels these are is known from shapes and types alone. So a step is gone through
once before, in which every launch only hands its kernel to a thread (Triton's compiler and the assembler let others run
meanwhile), and nothing is computed: results hold whatever their memory held. When it is over, all kernels are there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from threading import local
from typing import Any

import torch
from torch.autograd import set_multithreading_enabled

from enfa.cache import triton_in_folder

__all__ = ["can_rehearse", "rehearsal", "rehearsed"]

THREADS = 16

try:  # since Triton 3.5, whose compiler can do it
    from triton.runtime._async_compile import AsyncCompileMode
except ImportError:
    AsyncCompileMode = None


class _Here(local):
    """Of this thread: what another one launches at the same time is launched."""

    rehearses = False


rehearsed = _Here()


def can_rehearse() -> bool:
    return AsyncCompileMode is not None


def _load(device: int, kernel: Any) -> None:
    """What a compiled kernel lacks before it is launched: a launcher, made by a C compiler, and its place on the device."""
    with suppress(Exception):
        if torch.cuda.is_available():
            torch.cuda.set_device(device)  # of this thread
        _ = kernel.run


@contextmanager
def rehearsal() -> Iterator[None]:
    """In here this thread's launches compile their kernels, and nothing else; in the end all of them are compiled and loaded.

    What cannot be compiled is left to the launch, which says why.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    device = torch._C._cuda_getDevice()
    with (
        triton_in_folder(),
        set_multithreading_enabled(False),  # backward passes in this thread, too: launches of another one would be launches
        ThreadPoolExecutor(min(THREADS, cores)) as pool,
    ):
        with AsyncCompileMode(pool, ignore_errors=True) as mode:
            rehearsed.rehearses = True
            try:
                yield
            finally:
                rehearsed.rehearses = False
        compiled = [future.kernel for future in mode.future_kernels.values() if future.kernel is not None]
        list(pool.map(partial(_load, device), compiled))
