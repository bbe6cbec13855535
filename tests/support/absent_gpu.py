"""A GPU that is not there: the beginning of scripts in which kernels are compiled for one, and launches are noted.

``noted`` has what the driver is told of each launch.
"""

from importlib.metadata import PackageNotFoundError, version

import pytest

__all__ = ["ABSENT_GPU", "needs_triton"]


def _known() -> bool:
    for name in ("triton", "pytorch-triton", "pytorch-triton-rocm"):  # by which PyTorch's builds call it
        try:
            return tuple(map(int, version(name).split(".")[:2])) >= (3, 3)
        except PackageNotFoundError:
            continue
    return False


needs_triton = pytest.mark.skipif(not _known(), reason="Triton 3.3 or later, which our kernels need, is not installed")

ABSENT_GPU = """
import torch, triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
noted = []
class Launcher:
    def __init__(self, source, metadata): pass
    def __call__(self, *args): noted.append(args)
class Utils:
    def get_device_properties(self, device): return {"max_shared_mem": 2**18, "warpSize": 32, "multiprocessor_count": 132}
    def load_binary(self, *args): return (1, 2, 10, 0, 1024)[: 5 if hasattr(triton, "knobs") else 4]
    def unload_module(self, module): pass
class Driver:
    utils, launcher_cls = Utils(), Launcher
    def get_current_target(self): return GPUTarget("cuda", 90, 32)
    def get_current_device(self): return 0
    def get_current_stream(self, device): return 7
driver.set_active(Driver())
torch._C._cuda_getDevice, torch._C._cuda_getCurrentRawStream = (lambda: 0), (lambda device: 7)
torch.cuda.get_device_properties = lambda *of: type("GPU", (), {"multi_processor_count": 132})()
torch.cuda.get_device_capability = lambda *of: (9, 0)
"""
