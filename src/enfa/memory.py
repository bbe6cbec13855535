"""Memory of tensors on a CPU, kept from one training step to the next."""

import ctypes
import os
import platform

__all__ = ["keep_memory"]

TRIM_THRESHOLD, MMAP_MAX = -1, -4  # numbers of mallopt's parameters


def keep_memory() -> bool:
    """Have the C library keep what is freed for the next tensors, instead of handing it back; whether it does.

    For processes that train on a CPU under Linux, before the first step; ``enfa train`` and sweeps call it. Large tensors are
    otherwise mapped anew whenever they are made, and the system clears every page of them, which may take longer than what is
    computed on them. The process then stays as large as it ever was, by up to a half larger than without. Where the environment
    has a word on it (``MALLOC_MMAP_MAX_``, ``MALLOC_TRIM_THRESHOLD_``), that counts, and nothing is done.
    """
    if platform.libc_ver()[0] != "glibc" or {"MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_"} & os.environ.keys():
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(MMAP_MAX, 0) and mallopt(TRIM_THRESHOLD, -1))
