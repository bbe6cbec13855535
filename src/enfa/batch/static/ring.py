"""Memory that worker processes write and a GPU reads."""

import mmap
import warnings
import weakref
from typing import Any

import numpy as np
import torch

__all__ = ["Ring"]


class Ring:
    """Places for blocks of bytes, shared with every process that is forked later."""

    def __init__(self, places: int, nbytes: int) -> None:
        size = -(-max(nbytes, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        # anonymous: files in /dev/shm are often limited to a few megabytes
        self._memory = mmap.mmap(-1, places * size)
        self.bytes = np.frombuffer(self._memory, np.uint8).reshape(places, size)
        self.blocks = torch.from_numpy(self.bytes)
        self._registered: Any = None  # what undoes it

    def __len__(self) -> int:
        return len(self.bytes)

    def register(self) -> bool:
        """Let CUDA know the memory, so that copies to a GPU do not wait. Returns whether that was possible."""
        if self._registered is None:
            runtime, first = torch.cuda.cudart(), self.blocks.data_ptr()
            code = int(runtime.cudaHostRegister(first, self.blocks.numel(), 0))
            if code:
                warnings.warn(f"Copies to the GPU will wait: CUDA could not register memory (error {code})", stacklevel=3)
                return False
            # also when it is never closed: memory that is freed while it is registered spoils its addresses
            self._registered = weakref.finalize(self, runtime.cudaHostUnregister, first)
        return True

    def unregister(self) -> None:
        if self._registered is not None:
            torch.cuda.synchronize()  # nothing is being copied any more
            self._registered()
            self._registered = None
