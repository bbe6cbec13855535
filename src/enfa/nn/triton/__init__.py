"""Kernels for NVIDIA's GPUs. Nothing here is imported elsewhere than on CUDA, and nothing else needs Triton."""

from __future__ import annotations

import importlib.util
from functools import cache

import torch
from torch import Tensor

__all__ = ["accelerated"]


@cache
def _usable() -> bool:
    """Triton 3.3 or later: our kernels carry tuples, which 3.2, that of torch 2.6, does not know."""
    if torch.version.hip is not None or importlib.util.find_spec("triton") is None:
        return False
    import triton.language

    return hasattr(triton.language, "tuple")


def accelerated(tensor: Tensor) -> bool:
    """Whether our own kernels compute what is computed on this tensor; plain PyTorch gives the same results."""
    return tensor.is_cuda and _usable()
