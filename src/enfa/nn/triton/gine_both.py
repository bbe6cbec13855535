"""Both gradients of GINE's sum in one pass, where the edge kinds are few.

Whether a message came through its ReLU depends on the row that it comes from and on its kind alone. The gradients of a
row's readers are therefore summed by kind as they are; a sum is stopped or not when it is complete, and then goes to the
row and to the kind. Programs walk over the lists, a warp and a block of columns each, and keep their share of every
kind's sum; a second kernel adds the shares in a fixed order.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from enfa.nn.triton.launch import cdiv, kernel, next_power_of_2
from enfa.nn.triton.sums import accumulator, add_pieces, entries_of, piece_of, pieces_like
from enfa.plan.derived.maps import FEW_KINDS
from enfa.plan.derived.order import CHUNK, Lists

__all__ = ["both_gradients"]

UNROLL = 4  # entries of a list that are fetched at once
PROCESSORS = 132  # of an H200; fixed, because the order of sums depends on it


@triton.jit
def _zeros(COUNT: tl.constexpr, COLS: tl.constexpr, ACC: tl.constexpr):
    found = tl.tuple(())
    for _ in tl.static_range(COUNT):
        found += (tl.zeros((COLS,), ACC),)
    return found


@triton.jit
def _add_one(sums, what, value):
    """``value`` added to the sum that ``what`` says; -1, an own row, to the first."""
    found = tl.tuple(())
    for k in tl.static_range(len(sums)):
        # a chosen sum is one instruction, an added choice is two
        found += (tl.where(what == k - 1, sums[k] + value, sums[k]),)
    return found


@kernel(do_not_specialize=["num_lists", "num_pieces"])
def _both_kernel(
    grad, table, edge, eps, ptr, index, kind, extra, out, pieces, shares, own_shares, num_lists, num_pieces,
    SCALED: tl.constexpr, C: tl.constexpr, KINDS: tl.constexpr, CHUNK: tl.constexpr, ACC: tl.constexpr,
    COLS: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    first, stride, num_items = tl.program_id(0), tl.num_programs(0), num_lists + num_pieces
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    inside = cols < C
    share = _zeros(KINDS, COLS, ACC)
    own_share = tl.zeros((COLS,), ACC)
    scale = 1.0
    if SCALED:
        scale = 1 + tl.load(eps).to(ACC)
    # the next two lists, and the numbers of the next entries, are asked for early: only rows are waited for
    begin, end = piece_of(first, ptr, extra, num_lists, num_pieces, CHUNK)
    next_begin, next_end = piece_of(first + stride, ptr, extra, num_lists, num_pieces, CHUNK)
    rows, kinds = entries_of(index, begin, end, UNROLL), entries_of(kind, begin, end, UNROLL)
    for item in range(first, num_items, stride):
        later_begin, later_end = piece_of(item + 2 * stride, ptr, extra, num_lists, num_pieces, CHUNK)
        mine = tl.load(extra + 2 * num_pieces + item - num_lists, item >= num_lists, item).to(tl.int64)
        value = tl.load(table + mine * C + cols, inside, 0)
        sums = _zeros(KINDS + 1, COLS, ACC)
        length = tl.maximum(end - begin, 1)  # an empty list, too, goes on to the next
        for start in range(0, length, UNROLL):
            aboves, what = tl.tuple(()), kinds
            for step in tl.static_range(UNROLL):
                place = grad + rows[step].to(tl.int64) * C + cols
                aboves += (tl.load(place, inside & (rows[step] >= 0), 0),)
            last = start + UNROLL >= length
            at, to = tl.where(last, next_begin, begin + start + UNROLL), tl.where(last, next_end, end)
            rows, kinds = entries_of(index, at, to, UNROLL), entries_of(kind, at, to, UNROLL)
            for step in tl.static_range(UNROLL):
                sums = _add_one(sums, what[step], aboves[step].to(ACC))
        begin, end, next_begin, next_end = next_begin, next_end, later_begin, later_end
        total, more = sums[0], tl.tuple(())
        if SCALED:
            own_share += total * value.to(ACC)
            total *= scale
        for k in tl.static_range(KINDS):
            shift = tl.load(edge + k * C + cols, inside, 0).to(ACC)
            passed = tl.where(value.to(ACC) + shift <= 0, 0, sums[k + 1])
            total += passed
            more += (share[k] + passed,)
        share = more
        tl.store(out + mine * C + cols, total.to(out.dtype.element_ty), inside & (item < num_lists))
        tl.store(pieces + (item - num_lists).to(tl.int64) * C + cols, total, inside & (item >= num_lists))
    for k in tl.static_range(KINDS):
        tl.store(shares + (first * KINDS + k) * C + cols, share[k], inside)
    if SCALED:
        tl.store(own_shares + first * C + cols, own_share, inside)


@kernel(do_not_specialize=["num_shares"])
def _shares_kernel(
    shares, out, num_shares,
    C: tl.constexpr, KINDS: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """One kind: what all programs have of it."""
    what = tl.program_id(0)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    inside = cols < C
    total = tl.zeros((ROWS, COLS), ACC)
    for start in range(0, num_shares, ROWS):
        rows = start + tl.arange(0, ROWS)
        place = (rows * KINDS + what)[:, None] * C + cols[None, :]
        total += tl.load(shares + place, (rows < num_shares)[:, None] & inside[None, :], 0)
    tl.store(out + what * C + cols, tl.sum(total, 0).to(out.dtype.element_ty), inside)


def both_gradients(
    grad: Tensor, table: Tensor, edge: Tensor, eps: Tensor | None, lists: Lists
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Of the table, from the lists of its readers, of the features of few edge kinds, and of eps, if there is one."""
    assert edge.shape[0] <= FEW_KINDS
    (kinds, channels), pieces = edge.shape, pieces_like(table, lists)
    of_table, of_edge = table.new_empty(len(lists), channels), torch.empty_like(edge)
    if not of_table.numel():
        return of_table, of_edge.zero_(), None if eps is None else torch.zeros_like(eps)
    acc = accumulator(table.dtype)
    cols = min(64 if acc == tl.float64 else 128, max(32, next_power_of_2(channels)))
    # as many programs as run at once, which the registers that they may use allow
    registers, at_once = (128, 16) if kinds <= 8 else (168, 12) if kinds <= 11 else (255, 8)
    blocks = cdiv(channels, cols)
    programs = min(len(lists) + pieces.shape[0], cdiv(PROCESSORS * at_once, blocks))
    shares = pieces.new_empty(programs, kinds, channels)
    own_shares = shares if eps is None else pieces.new_empty(programs, channels)
    _both_kernel[programs, blocks](
        grad, table, edge, table if eps is None else eps, lists.ptr, lists.index, lists.other, lists.extra, of_table, pieces,
        shares, own_shares, len(lists), pieces.shape[0], SCALED=eps is not None, C=channels, KINDS=kinds, CHUNK=CHUNK, ACC=acc,
        COLS=cols, UNROLL=UNROLL, num_warps=1, maxnreg=registers,
    )  # fmt: skip
    if pieces.shape[0]:
        add_pieces(pieces, of_table, lists.long, add=True)
    _shares_kernel[kinds, cdiv(channels, 16)](
        shares, of_edge, programs, C=channels, KINDS=kinds, ACC=acc, ROWS=512, COLS=16, num_warps=16
    )
    return of_table, of_edge, None if eps is None else own_shares.sum().to(eps.dtype).view_as(eps)
