"""Products of tall tables in halves with wide weights, and with each other."""

from __future__ import annotations

from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from enfa.nn.triton.launch import Launch, cdiv, kernel
from enfa.nn.triton.linears.halved import LEAST, TILE, Halved
from enfa.nn.triton.linears.split import Halves, halves, padded, row_scales, times_halves
from enfa.nn.triton.linears.wide_kernels import store_columns, times_columns
from enfa.nn.triton.sums import row_shares

__all__ = ["halved_parts", "halved_times"]

PROGRAMS = 4 * 132  # as many as an H200 runs at once; fixed, because the order of sums depends on it


@triton.jit
def _load_halves(parts, place, mask, size):
    return tl.load(parts + place, mask, 0), tl.load(parts + size + place, mask, 0)


@triton.jit
def _downs(exponents, rows, here):
    """What takes halved rows to their own size again."""
    return ((tl.maximum(tl.load(exponents + rows, here, 0), LEAST) - 14) << 23).to(tl.float32, bitcast=True)


@kernel(do_not_specialize=["R"])
def _times_kernel(
    parts, exponents, w, back, shift, plus, out, R,
    K: tl.constexpr, N: tl.constexpr, P: tl.constexpr, STRIDE: tl.constexpr, SHIFTED: tl.constexpr, PLUS: tl.constexpr,
    ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """out [R, N] = halves of [R, K] times w [K, N], and what is added to it."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = rows < R
    long = rows.to(tl.int64)[:, None]
    n = tl.program_id(1) * COLS + tl.arange(0, COLS)
    total = tl.zeros((ROWS, COLS), tl.float32)
    for first in range(0, K, DEPTH):
        k = first + tl.arange(0, DEPTH)
        upper, lower = _load_halves(parts, long * P + k[None, :], here[:, None] & (k < P)[None, :], R.to(tl.int64) * P)
        # added up outside of the tensor cores, which cut off what they add
        total += times_columns(upper, lower, w, k, n, K, STRIDE)
    down = _downs(exponents, rows, here)[:, None]
    store_columns(total, down, back, shift, plus, out, long, here[:, None], n, N, SHIFTED, PLUS, False)


def halved_times(
    x: Halved, split: Halves, shape: torch.Size, bias: Tensor | None, transposed: bool, *, plus: Tensor | None = None
) -> Tensor:  # fmt: skip
    """``x @ weight.T + bias + plus`` for a weight [outs, ins], or with ``transposed`` ``x @ weight``."""
    outs, ins = shape
    k, n = (outs, ins) if transposed else (ins, outs)
    rows = x.rows
    out = x.parts.new_empty(rows, n, dtype=torch.float32)
    _times(k, n, bias is not None, plus is not None)(
        (cdiv(rows, 64), cdiv(n, 128)), *x, split.parts[int(transposed)], split.back[outs:] if transposed else split.back,
        out if bias is None else bias, out if plus is None else plus, out, rows,
    )  # fmt: skip
    return out


@cache
def _times(k: int, n: int, shifted: bool, plus: bool) -> Launch:
    return _times_kernel.launch(
        K=k, N=n, P=padded(k), STRIDE=padded(n), SHIFTED=shifted, PLUS=plus, ROWS=64, COLS=128, DEPTH=32, num_warps=4,
        num_stages=3,
    )  # fmt: skip


@triton.jit
def _load_rows(parts, exponents, r, here, cols, inside, size, P: tl.constexpr):
    """Rows of halves as they were."""
    place = r.to(tl.int64)[:, None] * P + cols[None, :]
    upper, lower = _load_halves(parts, place, here[:, None] & inside[None, :], size)
    return (upper.to(tl.float32) + lower.to(tl.float32)) * _downs(exponents, r, here)[:, None]


@kernel(do_not_specialize=["R"])
def _parts_kernel(
    grad, of_grad, x, of_x, downs, parts, R,
    N: tl.constexpr, K: tl.constexpr, P: tl.constexpr, Q: tl.constexpr,
    ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """parts [share of the rows, N * K]: the share's grad^T x."""
    part = tl.program_id(0)
    blocks: tl.constexpr = (K + COLS - 1) // COLS
    n = (tl.program_id(1) // blocks) * ROWS + tl.arange(0, ROWS)
    k = (tl.program_id(1) % blocks) * COLS + tl.arange(0, COLS)
    total = tl.zeros((ROWS, COLS), tl.float32)
    tiles = tl.cdiv(R, DEPTH)
    size_a, size_b = R.to(tl.int64) * P, R.to(tl.int64) * Q
    for tile in range(part, tiles, tl.num_programs(0)):
        r = tile * DEPTH + tl.arange(0, DEPTH)
        long, here = r.to(tl.int64)[:, None], (r < R)[:, None]
        upper_a, lower_a = _load_halves(grad, long * P + n[None, :], here & (n < P)[None, :], size_a)
        upper_b, lower_b = _load_halves(x, long * Q + k[None, :], here & (k < Q)[None, :], size_b)
        total += times_halves(tl.trans(upper_a), tl.trans(lower_a), upper_b, lower_b) * tl.load(downs + tile)
    for first in range(part, tiles, AHEAD * tl.num_programs(0)):  # marked tiles: rows of very different sizes
        mine = first + tl.arange(0, AHEAD) * tl.num_programs(0)
        mine = tl.where(tl.load(downs + mine, mine < tiles, 1) == 0, mine, tiles)
        tile = tl.min(mine, 0)
        while tile < tiles:
            r = tile * DEPTH + tl.arange(0, DEPTH)
            a = _load_rows(grad, of_grad, r, r < R, n, n < P, size_a, P)
            b = _load_rows(x, of_x, r, r < R, k, k < Q, size_b, Q)
            up_a, up_b, down = row_scales(tl.max(tl.abs(a), 1), tl.max(tl.abs(b), 1))
            upper_a, lower_a = halves(a * up_a[:, None])
            upper_b, lower_b = halves(b * up_b[:, None])
            total += times_halves(tl.trans(upper_a), tl.trans(lower_a), upper_b, lower_b) * down
            tile = tl.min(tl.where(mine > tile, mine, tiles), 0)
    place = parts + part.to(tl.int64) * N * K
    tl.store(place + n[:, None] * K + k[None, :], total, (n < N)[:, None] & (k < K)[None, :])


def halved_parts(grad: Halved, x: Halved, downs: Tensor, shape: torch.Size) -> Tensor:
    """[shares, N * K]: ``grad.T @ x`` by shares of the rows; ``downs`` as :func:`halve_gradient` returns them."""
    n, k = shape
    blocks = cdiv(n, 64) * cdiv(k, 64)
    parts, _ = row_shares(x.rows, TILE, max(16, PROGRAMS // blocks))
    out = torch.empty(parts, n * k, dtype=torch.float32, device=downs.device)
    _parts_kernel[(parts, blocks)](
        *grad, *x, downs, out, x.rows, N=n, K=k, P=padded(n), Q=padded(k), ROWS=64, COLS=64, DEPTH=TILE, AHEAD=128,
        num_warps=4, num_stages=3,
    )  # fmt: skip
    return out
