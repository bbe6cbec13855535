"""The sum of GINE, x_v + sum of relu(x_u + e_kind), without ever storing a message.

Backwards, the mask of the ReLU is computed again. The gradient of the edge features has few rows and very many writers.
With few kinds of edges it comes out of the same pass as the table's: ``enfa.nn.triton.gine_both``. With many, messages
stand ordered by kind, pieces of them are summed by programs of their own, and a second kernel adds the pieces of each
kind in a fixed order.
"""

from __future__ import annotations

from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from enfa.nn.ops.function import applied, backward_once
from enfa.nn.triton.gine_both import both_gradients
from enfa.nn.triton.launch import cdiv, kernel
from enfa.nn.triton.sums import accumulator, add_pieces, launch_sums, piece_of, pieces_like, store_sums
from enfa.plan.derived.order import Lists, SparseMap

__all__ = ["gine_sum"]


@kernel(do_not_specialize=["num_lists", "num_pieces"])
def _gine_kernel(
    read, table, edge, eps, ptr, index, kind, extra, out, pieces, num_lists, num_pieces,
    BACKWARD: tl.constexpr, SCALED: tl.constexpr, C: tl.constexpr, CHUNK: tl.constexpr, ACC: tl.constexpr,
    ROWS: tl.constexpr, COLS: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """``read`` is the table; BACKWARD, the gradients of a row's readers, which count where the message was let through.

    SCALED: own rows count 1 + eps times.
    """
    items = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    inside = cols < C
    begin, end = piece_of(items, ptr, extra, num_lists, num_pieces, CHUNK)
    if BACKWARD:
        is_piece = (items >= num_lists) & (items < num_lists + num_pieces)
        owner = tl.load(extra + 2 * num_pieces + items - num_lists, is_piece, 0)
        mine = tl.where(items < num_lists, items, owner).to(tl.int64)
        exists = (items < num_lists + num_pieces)[:, None] & inside[None, :]
        own = tl.load(table + mine[:, None] * C + cols[None, :], exists, 0).to(ACC)
    total = tl.zeros((ROWS, COLS), ACC)
    for start in range(0, tl.max(end - begin), UNROLL):
        for step in tl.static_range(UNROLL):
            at = begin + start + step
            here = at < end
            row = tl.load(index + at, here, 0).to(tl.int64)
            what = tl.load(kind + at, here, -1).to(tl.int64)
            value = tl.load(read + row[:, None] * C + cols[None, :], here[:, None] & inside[None, :], 0).to(ACC)
            sent = (what >= 0)[:, None]
            shift = tl.load(edge + what[:, None] * C + cols[None, :], sent & inside[None, :], 0).to(ACC)
            if SCALED:
                value = tl.where(sent, value, value * (1 + tl.load(eps).to(ACC)))
            if BACKWARD:
                total += tl.where(sent & (own + shift <= 0), 0, value)
            else:
                total += tl.where(sent & (value + shift <= 0), 0, value + shift)  # not the maximum, which hides NaN
    store_sums(total, items, cols, inside, out, pieces, num_lists, num_pieces, C)


@kernel(do_not_specialize=["num_pieces"])
def _kinds_kernel(
    grad, table, edge, target, source, extra, pieces, num_pieces,
    C: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """One piece of the messages of one kind: the sum of what came through, backwards."""
    piece = tl.program_id(0)
    begin, end = tl.load(extra + piece), tl.load(extra + num_pieces + piece)
    what = tl.load(extra + 2 * num_pieces + piece).to(tl.int64)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    inside = cols < C
    shift = tl.load(edge + what * C + cols, inside, 0).to(ACC)
    total = tl.zeros((ROWS, COLS), ACC)
    for start in range(begin, end, ROWS):
        at = start + tl.arange(0, ROWS)
        here = at < end
        mask = here[:, None] & inside[None, :]
        to, of = tl.load(target + at, here, 0).to(tl.int64), tl.load(source + at, here, 0).to(tl.int64)
        above = tl.load(grad + to[:, None] * C + cols[None, :], mask, 0).to(ACC)
        value = tl.load(table + of[:, None] * C + cols[None, :], mask, 0).to(ACC)
        total += tl.where(value + shift[None, :] <= 0, 0, above)
    tl.store(pieces + piece.to(tl.int64) * C + cols, tl.sum(total, 0), inside)


def _edge_gradient(grad: Tensor, table: Tensor, edge: Tensor, kinds: Lists) -> Tensor:
    assert kinds.other is not None
    channels, pieces = table.shape[1], pieces_like(table, kinds)
    out = torch.empty_like(edge)
    shape = {"ROWS": 16, "COLS": 128 if channels > 128 else 64, "num_warps": 4}
    _kinds_kernel[pieces.shape[0], cdiv(channels, shape["COLS"])](
        grad, table, edge, kinds.index, kinds.other, kinds.extra, pieces, pieces.shape[0],
        C=channels, ACC=accumulator(table.dtype), **shape,
    )  # fmt: skip
    add_pieces(pieces, out, kinds.long, add=False)
    return out


class _Gine(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, table: Tensor, edge: Tensor, eps: Tensor | None, merged: SparseMap, kinds: Lists | None
    ) -> Tensor:  # fmt: skip
        table, edge = table.contiguous(), edge.to(table.dtype).contiguous()
        ctx.save_for_backward(table, edge, eps)
        ctx.lists = merged.backward, kinds
        read, scaled = (table, table, edge, table if eps is None else eps), eps is not None
        return launch_sums(_gine_kernel, merged.forward, merged.forward.other, *read, BACKWARD=False, SCALED=scaled)

    @staticmethod
    @backward_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (table, edge, eps), (back, kinds) = ctx.saved_tensors, ctx.lists
        grad = grad.contiguous()
        wanted = ctx.needs_input_grad
        if eps is not None or (wanted[1] and kinds is None and edge.shape[0]):
            return *both_gradients(grad, table, edge, eps, back), None, None
        read = grad, table, edge, table
        of_table = launch_sums(_gine_kernel, back, back.other, *read, BACKWARD=True, SCALED=False) if wanted[0] else None
        of_edge = None if not wanted[1] or kinds is None else _edge_gradient(grad, table, edge, kinds)
        return of_table, of_edge, None, None, None


def gine_sum(
    table: Tensor, edge: Tensor, merged: SparseMap, kinds: Lists | None, eps: Tensor | None = None
) -> Tensor:  # fmt: skip
    """[R, C] from a table [R', C], the features of every edge kind [KE, C] and the links in both orders.

    ``eps`` [1]: own rows count 1 + eps times; where edges are of few kinds, ``kinds`` is None.
    """
    assert eps is None or (kinds is None and edge.shape[0])
    return applied(_Gine, table, edge, eps, merged, kinds)
