"""Kernels for CUDA. Nothing here is imported elsewhere than on CUDA, and nothing else needs Triton."""

from __future__ import annotations

import importlib.util
from functools import cache

from torch import Tensor

__all__ = ["accelerated"]


@cache
def _installed() -> bool:
    return importlib.util.find_spec("triton") is not None


def accelerated(tensor: Tensor) -> bool:
    """Whether our own kernels compute what is computed on this tensor; plain PyTorch gives the same results."""
    return tensor.is_cuda and _installed()
