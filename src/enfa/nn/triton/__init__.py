"""Kernels for NVIDIA's GPUs. Nothing here is imported elsewhere than on CUDA, and nothing else needs Triton.

With TRITON_INTERPRET=1 in the environment before Triton is imported, Triton interprets its kernels, slowly; then they
compute on the CPU, too, so that they can be tested where there is no GPU.
"""

from __future__ import annotations

import importlib.util
import os
from functools import cache

import torch
from torch import Tensor

__all__ = ["accelerated", "matmul_precision", "mixed"]


@cache
def _usable() -> bool:
    """Triton 3.3 or later: our kernels carry tuples, which 3.2, that of torch 2.6, does not know."""
    if torch.version.hip is not None or importlib.util.find_spec("triton") is None:
        return False
    import triton.language

    return hasattr(triton.language, "tuple")


@cache
def _interpreted() -> bool:
    """Whether Triton runs its kernels in its interpreter, which takes tensors of the CPU."""
    return os.environ.get("TRITON_INTERPRET", "0").lower() in ("1", "true", "yes", "on", "y")


def accelerated(tensor: Tensor) -> bool:
    """Whether our own kernels compute what is computed on this tensor; plain PyTorch gives the same results."""
    return (tensor.is_cuda or (_interpreted() and tensor.device.type == "cpu")) and _usable()


def mixed(tensor: Tensor) -> bool:
    """Whether our own kernels compute on this tensor under autocast: in bfloat16, and nothing else."""
    kind = tensor.device.type
    return torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind) == torch.bfloat16 and accelerated(tensor)


def matmul_precision() -> str:
    """ "highest", "high" or "medium", whichever of PyTorch's two ways it was set in."""
    try:
        return torch._C._get_float32_matmul_precision()
    except RuntimeError:  # set in the newer way, which the older refuses to tell of
        return {"tf32": "high"}.get(torch.backends.cuda.matmul.fp32_precision, "highest")
