"""A rehearsal: launches whose kernels are compiled, by threads beside each other, and which do nothing else.

A step runs some forty kernels, and each is compiled when it is launched for the first time, while everything else waits: half a
minute on the first run of a model. Which kernels these are is known from shapes and types alone. So a step is gone through
once before, in which every launch only hands its kernel to a thread (Triton's compiler and the assembler let others run
meanwhile), and nothing is computed: results hold whatever their memory held. When it is over, all kernels are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from threading import local
from typing import Any

import torch
from torch.autograd import set_multithreading_enabled

from enfa.cache import triton_in_folder
from enfa.cores import cores

__all__ = ["can_rehearse", "here", "rehearsal"]

THREADS = 16

try:  # which earlier versions of Triton do not have
    from triton.runtime._async_compile import AsyncCompileMode, FutureKernel
except ImportError:
    AsyncCompileMode = FutureKernel = None


class _Here(local):
    """Of this thread: what another one launches at the same time is launched."""

    kernels: dict[int, Any] | None = None
    """What has been asked for in the rehearsal that is going on, by their ``id``; None where there is none."""


here = _Here()


def can_rehearse() -> bool:
    return AsyncCompileMode is not None


def _load(device: int, kernel: Any) -> None:
    """What a compiled kernel lacks before it is launched: a launcher, made by a C compiler, and its place on the device."""
    with suppress(Exception):
        if torch.cuda.is_available():
            torch.cuda.set_device(device)  # of this thread
        _ = kernel.run


def _forget_failed(kernels: Iterable[Any]) -> None:
    """What could not be compiled, for want of memory say, would fail at every launch, as Triton goes on waiting for it."""
    for jit in kernels:
        for kept, *_ in jit.device_caches.values():
            for key in [key for key, found in kept.items() if isinstance(found, FutureKernel) and found.kernel is None]:
                del kept[key]


@contextmanager
def rehearsal(new: list[Any]) -> Iterator[None]:
    """In here this thread's launches compile their kernels, and nothing else; in the end all of them are compiled and loaded.

    ``new``: a list that has those then that this process did not have. What cannot be compiled is left to the launch.
    """
    device = torch._C._cuda_getDevice()
    asked: dict[int, Any] = {}
    with (
        triton_in_folder(),
        set_multithreading_enabled(False),  # backward passes in this thread, too: launches of another one would be launches
        ThreadPoolExecutor(min(THREADS, cores())) as pool,
    ):
        here.kernels = asked
        try:
            with AsyncCompileMode(pool, ignore_errors=True) as mode:
                yield
        finally:
            here.kernels = None
            _forget_failed(asked.values())
        new += [future.kernel for future in mode.future_kernels.values() if future.kernel is not None]
        list(pool.map(partial(_load, device), new))
