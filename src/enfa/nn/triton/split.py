"""Weights split into two parts that the tensor cores take, once for all programs that multiply by them."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["NARROW", "split_weight", "splits", "upper_part"]

NARROW = 64  # a weight of at most so many rows and columns is held by a program as a whole


@triton.jit
def upper_part(value):
    """Rounded to the bits that the tensor cores take of a float32."""
    return ((value.to(tl.int32, bitcast=True) + 4096) & -8192).to(tl.float32, bitcast=True)


@triton.jit
def _split_kernel(w, out, N: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr):
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = (n < N)[:, None] & (k < K)[None, :]
    value = tl.load(w + n[:, None] * K + k[None, :], there, 0)
    upper = upper_part(value)
    place = n[:, None] * K + k[None, :]
    turned = n[:, None] + k[None, :] * N
    tl.store(out + place, upper, there)
    tl.store(out + N * K + place, value - upper, there)
    tl.store(out + 2 * N * K + turned, upper, there)
    tl.store(out + 3 * N * K + turned, value - upper, there)


def splits(weight: Tensor) -> bool:
    """Whether :func:`split_weight` pays and is wanted."""
    wide = max(weight.shape) > NARROW and weight.dtype == torch.float32
    return wide and torch.get_float32_matmul_precision() == "highest"


def split_weight(weight: Tensor) -> Tensor:
    """[2, 2, size]: a float32 weight and its transpose, each as an upper and a lower part that add up to it.

    Split once, they are read as they are by every program of :func:`tall_times`, forwards and backwards.
    """
    n, k = weight.shape
    out = torch.empty(2, 2, n * k, device=weight.device)
    _split_kernel[(triton.cdiv(n, 32), triton.cdiv(k, 32))](weight, out, N=n, K=k, BLOCK=32, num_warps=4)
    return out
