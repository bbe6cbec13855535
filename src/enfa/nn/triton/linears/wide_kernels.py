"""The kernels of wide products: in float32, of operands in halves, or in bfloat16, of operands as they are stored."""

import triton
import triton.language as tl

from enfa.nn.triton.launch import kernel
from enfa.nn.triton.linears.products import gated
from enfa.nn.triton.linears.split import halves, row_scales, scales, times_halves
from enfa.nn.triton.norm_kernels import load_scaling, normalised

__all__ = ["store_columns", "times_columns", "weight_kernel", "wide_kernel"]


@triton.jit
def _load_normed(
    x, place, mask, counted, saved, weight, bias, k, K: tl.constexpr, AFFINE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """As normalise_kernel writes them: a row that stands for nothing comes out as the bias, whatever it holds."""
    inside = k < K
    mean, rstd = tl.load(saved + k, inside, 0), tl.load(saved + K + k, inside, 0)
    scale, shift = load_scaling(rstd, weight, bias, k, inside, AFFINE, tl.float32, DEPTH)
    value = tl.where(counted, tl.load(x + place, mask, 0).to(tl.float32), mean[None, :])
    return tl.where(mask, normalised(value, mean, scale, shift, True), 0)


@triton.jit
def times_columns(upper, lower, w, k, n, K: tl.constexpr, STRIDE: tl.constexpr):
    """Some rows, in halves, times some columns of w [K, STRIDE]: zeros behind the last."""
    at = w + k[:, None] * STRIDE + n[None, :]
    held = (k < K)[:, None] & (n < STRIDE)[None, :]
    return times_halves(upper, lower, tl.load(at, held, 0), tl.load(at + K * STRIDE, held, 0))


@triton.jit
def store_columns(
    total, down, back, shift, plus, out, long, here, n,
    N: tl.constexpr, SHIFTED: tl.constexpr, PLUS: tl.constexpr, RELU: tl.constexpr,
):  # fmt: skip
    """A product by the powers of two of its rows and columns, what is added to it, and where it is written."""
    mask = here & (n < N)[None, :]
    if out.dtype.element_ty != tl.bfloat16:
        back_n = tl.load(back + n, n < N, 0)[None, :]
        total *= tl.minimum(down, back_n)  # the smaller of the two powers first: the other one would overflow
        total *= tl.maximum(down, back_n)
    if SHIFTED:
        total += tl.load(shift + n, n < N, 0)[None, :]
    if PLUS:
        total += tl.load(plus + long * N + n[None, :], mask, 0).to(tl.float32)
    if RELU:
        total = tl.where(total <= 0, 0, total)  # not the maximum, which hides NaN
    tl.store(out + long * N + n[None, :], total.to(out.dtype.element_ty), mask)


@kernel(do_not_specialize=["R"])
def wide_kernel(
    x, gate, saved, weight, bias, copies, w, back, shift, plus, out, R,
    K: tl.constexpr, N: tl.constexpr, NORMED: tl.constexpr, AFFINE: tl.constexpr, GATED: tl.constexpr,
    STRIDE: tl.constexpr, SHIFTED: tl.constexpr, PLUS: tl.constexpr, RELU: tl.constexpr, ROWS: tl.constexpr,
    COLS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """out [R, N] = x [R, K] times w [K, N], which comes in halves, or all of them are bfloat16; and what is added to it.

    The last rows first: x was written from the first to the last, and the cache holds what was written last.
    """
    rows = (tl.num_programs(0) - 1 - tl.program_id(0)) * ROWS + tl.arange(0, ROWS)
    n = tl.program_id(1) * COLS + tl.arange(0, COLS)
    here = (rows < R)[:, None]
    long = rows.to(tl.int64)[:, None]
    total = tl.zeros((ROWS, COLS), tl.float32)
    counted = here
    if NORMED:
        counted = (tl.load(copies + rows, rows < R, 0) > 0)[:, None]
    for first in range(0, K, DEPTH):
        k = first + tl.arange(0, DEPTH)
        mask = here & (k < K)[None, :]
        if NORMED:
            a = _load_normed(x, long * K + k[None, :], mask, counted, saved, weight, bias, k, K, AFFINE, DEPTH)
        else:
            a = gated(x, gate, long * K + k[None, :], mask, GATED)
        if w.dtype.element_ty == tl.bfloat16:
            some = tl.load(w + k[:, None] * STRIDE + n[None, :], (k < K)[:, None] & (n < STRIDE)[None, :], 0)
            total = tl.dot(a.to(tl.bfloat16), some, total)
        else:
            up, down = scales(tl.max(tl.abs(a), 1))
            upper, lower = halves(a * up[:, None])
            total += times_columns(upper, lower, w, k, n, K, STRIDE) * down[:, None]
    store_columns(total, 1.0, back, shift, plus, out, long, here, n, N, SHIFTED, PLUS, RELU)


@kernel(do_not_specialize=["R"])
def weight_kernel(
    grad, gate, x, saved, weight, bias, copies, parts, R,
    N: tl.constexpr, K: tl.constexpr, NORMED: tl.constexpr, COUNTED: tl.constexpr, AFFINE: tl.constexpr, GATED: tl.constexpr,
    SUMS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """parts [share of the rows, N * K]: the share's grad^T x; where SUMS, the sums of grad [N] behind it.

    COUNTED: a row that stands for nothing, whose gradient is 0, may hold anything.
    """
    part = tl.program_id(0)
    blocks: tl.constexpr = (K + COLS - 1) // COLS
    n = (tl.program_id(1) // blocks) * ROWS + tl.arange(0, ROWS)
    k = (tl.program_id(1) % blocks) * COLS + tl.arange(0, COLS)
    total = tl.zeros((ROWS, COLS), tl.float32)
    sums = tl.zeros((DEPTH, ROWS), tl.float32)
    tiles = tl.cdiv(R, DEPTH)
    for tile in range(part, tiles, tl.num_programs(0)):
        r = (tiles - 1 - tile) * DEPTH + tl.arange(0, DEPTH)
        here = (r < R)[:, None]
        long = r.to(tl.int64)[:, None]
        a = gated(grad, gate, long * N + n[None, :], here & (n < N)[None, :], GATED)
        mask = here & (k < K)[None, :]
        if NORMED:
            counted = (tl.load(copies + r, r < R, 0) > 0)[:, None]
            b = _load_normed(x, long * K + k[None, :], mask, counted, saved, weight, bias, k, K, AFFINE, COLS)
        else:
            b = tl.load(x + long * K + k[None, :], mask, 0)
        if COUNTED:
            b = tl.where((tl.load(copies + r, r < R, 0) > 0)[:, None], b, 0)
        if grad.dtype.element_ty == tl.bfloat16:
            total = tl.dot(tl.trans(a), b.to(tl.bfloat16), total)
        else:
            up_a, up_b, down = row_scales(tl.max(tl.abs(a), 1), tl.max(tl.abs(b), 1))
            upper_a, lower_a = halves(a * up_a[:, None])
            upper_b, lower_b = halves(b * up_b[:, None])
            total += times_halves(tl.trans(upper_a), tl.trans(lower_a), upper_b, lower_b) * down
        if SUMS:
            sums += a
    size: tl.constexpr = N * K + (N if SUMS else 0)
    place = parts + part.to(tl.int64) * size
    tl.store(place + n[:, None] * K + k[None, :], total, (n < N)[:, None] & (k < K)[None, :])
    if SUMS:
        tl.store(place + N * K + n, tl.sum(sums, 0), (n < N) & (tl.program_id(1) % blocks == 0))
