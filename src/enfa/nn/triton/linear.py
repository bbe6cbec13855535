"""Matrix products of tall tables with small weights, in float32 accuracy on the tensor cores.

Each float32 factor is split into two tf32 numbers and three products are added up (tf32x3), which keeps float32's
accuracy at a multiple of its speed. Sums over the rows (weight gradients) are taken in shares, added in a fixed order.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["tall_times", "weight_gradient"]


@triton.jit(do_not_specialize=["R"])
def _tall_kernel(
    x, w, bias, out, R,
    K: tl.constexpr, N: tl.constexpr, W_K: tl.constexpr, W_N: tl.constexpr, BIAS: tl.constexpr,
    PRECISION: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """out [R, N] = x [R, K] times w, whose element (k, n) is at ``k * W_K + n * W_N``."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    total = tl.zeros((ROWS, COLS), tl.float32)
    for start in range(0, K, DEPTH):
        k = start + tl.arange(0, DEPTH)
        a = tl.load(x + rows.to(tl.int64)[:, None] * K + k[None, :], (rows < R)[:, None] & (k < K)[None, :], 0)
        b = tl.load(w + k[:, None] * W_K + cols[None, :] * W_N, (k < K)[:, None] & (cols < N)[None, :], 0)
        total = tl.dot(a, b, total, input_precision=PRECISION)
    if BIAS:
        total += tl.load(bias + cols, cols < N, 0)[None, :]
    place = out + rows.to(tl.int64)[:, None] * N + cols[None, :]
    tl.store(place, total, (rows < R)[:, None] & (cols < N)[None, :])


@triton.jit(do_not_specialize=["R", "share"])
def _weight_kernel(
    grad, x, parts, R, share,
    N: tl.constexpr, K: tl.constexpr,
    PRECISION: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """parts [share of the rows, N, K] = the share's grad^T x."""
    part = tl.program_id(0)
    blocks: tl.constexpr = (K + COLS - 1) // COLS
    n = (tl.program_id(1) // blocks) * ROWS + tl.arange(0, ROWS)
    k = (tl.program_id(1) % blocks) * COLS + tl.arange(0, COLS)
    total = tl.zeros((ROWS, COLS), tl.float32)
    end = tl.minimum((part + 1) * share, R)
    for start in range(part * share, end, DEPTH):
        r = start + tl.arange(0, DEPTH)
        here = r < end
        a = tl.load(grad + r.to(tl.int64)[None, :] * N + n[:, None], here[None, :] & (n < N)[:, None], 0)
        b = tl.load(x + r.to(tl.int64)[:, None] * K + k[None, :], here[:, None] & (k < K)[None, :], 0)
        total = tl.dot(a, b, total, input_precision=PRECISION)
    place = parts + part.to(tl.int64) * N * K + n[:, None] * K + k[None, :]
    tl.store(place, total, (n < N)[:, None] & (k < K)[None, :])


def tall_times(
    x: Tensor, weight: Tensor, bias: Tensor | None, transposed: bool, precision: str = "tf32x3",
    shape: tuple[int, int, int, int, int] = (128, 64, 32, 4, 3),
) -> Tensor:  # fmt: skip
    """``x @ weight.T + bias`` (as nn.Linear), or with ``transposed`` ``x @ weight``."""
    out_features, in_features = weight.shape
    k, n = (out_features, in_features) if transposed else (in_features, out_features)
    strides = (in_features, 1) if transposed else (1, in_features)
    out = x.new_empty(len(x), n)
    rows, cols, depth, warps, stages = shape
    _tall_kernel[triton.cdiv(len(x), rows), triton.cdiv(n, cols)](
        x, weight, weight if bias is None else bias, out, len(x), K=k, N=n, W_K=strides[0], W_N=strides[1],
        BIAS=bias is not None, PRECISION=precision, ROWS=rows, COLS=cols, DEPTH=depth, num_warps=warps,
        num_stages=stages,
    )  # fmt: skip
    return out


def weight_gradient(
    grad: Tensor, x: Tensor, precision: str = "tf32x3", shape: tuple[int, int, int, int, int] = (64, 64, 32, 4, 3),
    parts: int = 32,
) -> Tensor:  # fmt: skip
    """``grad.T @ x``."""
    n, k = grad.shape[1], x.shape[1]
    rows, cols, depth, warps, stages = shape
    share = triton.cdiv(triton.cdiv(len(x), parts), depth) * depth
    parts = triton.cdiv(len(x), share)
    out = torch.empty(parts, n, k, dtype=torch.float32, device=x.device)
    _weight_kernel[parts, triton.cdiv(n, rows) * triton.cdiv(k, cols)](
        grad, x, out, len(x), share, N=n, K=k, PRECISION=precision, ROWS=rows, COLS=cols, DEPTH=depth,
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return out.sum(0)
