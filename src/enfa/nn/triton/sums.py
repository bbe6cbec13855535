"""Sums over lists of rows: CSR forwards, and over the transposed lists backwards.

A program sums ``ROWS`` lists at once, a block of columns each, so that many independent gathers are in flight: first
the numbers of ``UNROLL`` entries of each list are loaded, then all their rows, then they are added. Lists are cut at
CHUNK entries; the pieces behind that are summed by programs of their own and added by a second, small kernel, in a fixed
order. Every output element is written by one program: no atomic adds, the same bits in every run.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from enfa.nn.triton.launch import Kernel, Launch, cdiv, kernel, next_power_of_2
from enfa.plan.derived.order import CHUNK, Lists

__all__ = [
    "accumulator", "add_pieces", "entries_of", "launch_sums", "piece_of", "pieces_like", "registers", "row_shares", "rows_of",
    "shape_of", "store_sums", "triton_sums",
]  # fmt: skip

UNROLL = 4  # entries of each list that are fetched at once


@triton.jit
def piece_of(items, ptr, extra, num_lists, num_pieces, CHUNK: tl.constexpr):
    """Where the entries of some items begin and end: a list's first CHUNK entries, or a later piece."""
    is_list = items < num_lists
    is_piece = (items >= num_lists) & (items < num_lists + num_pieces)
    begin = tl.load(ptr + items, is_list, 0) + tl.load(extra + items - num_lists, is_piece, 0)
    end = tl.minimum(tl.load(ptr + items + 1, is_list, 0), begin + CHUNK)
    end += tl.load(extra + num_pieces + items - num_lists, is_piece, 0)
    return begin, end


@triton.jit
def entries_of(numbers, begin, end, COUNT: tl.constexpr):
    """A tuple: the number that each of the next COUNT entries of every item has there, -1 behind the end.

    All of them at once, and what they lead to only then: the compiler keeps loads in this order, and an entry after the
    other would wait for memory twice each.
    """
    found = tl.tuple(())
    for step in tl.static_range(COUNT):
        found += (tl.load(numbers + begin + step, begin + step < end, -1),)
    return found


@triton.jit
def rows_of(table, rows, cols, inside, STRIDE: tl.constexpr):
    """The rows of a table that a tuple names, as they are stored there; zeros for -1."""
    found = tl.tuple(())
    for step in tl.static_range(len(rows)):
        place = table + rows[step].to(tl.int64)[:, None] * STRIDE + cols[None, :]
        found += (tl.load(place, (rows[step] >= 0)[:, None] & inside[None, :], 0),)
    return found


@triton.jit
def store_sums(total, items, cols, inside, out, pieces, num_lists, num_pieces, C: tl.constexpr):
    """Lists go to ``out``, later pieces to ``pieces``."""
    items = items.to(tl.int64)
    place = out + items[:, None] * C + cols[None, :]
    tl.store(place, total.to(out.dtype.element_ty), (items < num_lists)[:, None] & inside[None, :])
    if num_pieces > 0:
        piece = items - num_lists
        there = (piece >= 0) & (piece < num_pieces)
        tl.store(pieces + piece[:, None] * C + cols[None, :], total, there[:, None] & inside[None, :])


@kernel(do_not_specialize=["num_lists", "num_pieces"])
def _sum_kernel(
    table, ptr, index, weight, extra, out, pieces, num_lists, num_pieces,
    C: tl.constexpr, STRIDE: tl.constexpr, WEIGHTED: tl.constexpr, CHUNK: tl.constexpr, ACC: tl.constexpr,
    ROWS: tl.constexpr, COLS: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    items = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    inside = cols < C
    begin, end = piece_of(items, ptr, extra, num_lists, num_pieces, CHUNK)
    total = tl.zeros((ROWS, COLS), ACC)
    for start in range(0, tl.max(end - begin), UNROLL):
        rows = entries_of(index, begin + start, end, UNROLL)
        if WEIGHTED:
            weights = entries_of(weight, begin + start, end, UNROLL)
        values = rows_of(table, rows, cols, inside, STRIDE)
        for step in tl.static_range(UNROLL):
            value = values[step].to(ACC)
            if WEIGHTED:
                value *= weights[step].to(ACC)[:, None]
            total += value
    store_sums(total, items, cols, inside, out, pieces, num_lists, num_pieces, C)


@kernel(do_not_specialize=["num_long"])
def _pieces_kernel(
    pieces, out, long, num_long,
    C: tl.constexpr, ADD: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """One long list: its pieces' sums, added to what is there (ADD) or stored."""
    i = tl.program_id(0)
    begin, end = tl.load(long + num_long + i), tl.load(long + 2 * num_long + i)
    if (end > begin) | (not ADD):
        cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
        inside = cols < C
        total = tl.zeros((ROWS, COLS), ACC)
        for start in range(begin, end, ROWS):
            rows = start + tl.arange(0, ROWS)
            mask = (rows < end)[:, None] & inside[None, :]
            total += tl.load(pieces + rows.to(tl.int64)[:, None] * C + cols[None, :], mask, 0)
        result = tl.sum(total, 0)
        row = i
        if ADD:
            row = tl.load(long + i)
        place = out + row.to(tl.int64) * C + cols
        if ADD:
            result += tl.load(place, inside, 0).to(ACC)
        tl.store(place, result.to(out.dtype.element_ty), inside)


@cache
def shape_of(channels: int) -> dict[str, Any]:
    """Tile and number of warps, as measured on an H200: small tiles, so that many gathers are in flight."""
    if channels <= 32:
        rows, cols, warps = 8, 32, 1
    else:
        rows, cols, warps = (4, 128, 2) if channels % 128 == 0 else (16, 64, 4)
    return {"ROWS": rows, "COLS": cols, "num_warps": warps}


def registers(dtype: torch.dtype, most: int) -> dict[str, int]:
    """What a thread may use, as an option of a launch: told so, the compiler lets all loads out before the first is used.

    Left alone it saves registers and waits in between. Sums in float64 need twice as many, and are left alone.
    """
    return {} if dtype == torch.float64 else {"maxnreg": most}


@lru_cache(1024)
def row_shares(rows: int, tile: int, most: int) -> tuple[int, int]:
    """Number of shares, and rows per share: whole tiles."""
    blocks = max(1, cdiv(rows, tile))
    share = cdiv(blocks, min(most, blocks)) * tile
    return max(1, cdiv(rows, share)), share


def accumulator(dtype: torch.dtype) -> Any:
    """Sums of half-width numbers are taken in float32."""
    return tl.float64 if dtype == torch.float64 else tl.float32


def pieces_like(table: Tensor, lists: Lists) -> Tensor:
    """Room for the sums of the pieces, as wide as sums are taken."""
    dtype = torch.float64 if table.dtype == torch.float64 else torch.float32
    return table.new_empty(lists.extra.shape[1], table.shape[1], dtype=dtype)


@cache
def _adding(channels: int, add: bool, dtype: torch.dtype) -> tuple[Launch, int]:
    """And how many blocks of columns there are."""
    # very many lists of a few pieces, or a few lists of very many
    rows, most, warps = (8, 64, 1) if add else (128, 32, 8)
    cols = min(most, max(16, next_power_of_2(channels)))
    return (
        _pieces_kernel.launch(C=channels, ADD=add, ACC=accumulator(dtype), ROWS=rows, COLS=cols, num_warps=warps),
        cdiv(channels, cols),
    )


def add_pieces(pieces: Tensor, out: Tensor, long: Tensor, add: bool) -> None:
    """The second pass: to ``out``, or into it, what the pieces of every long list add up to."""
    launch, across = _adding(pieces.shape[1], add, pieces.dtype)
    count = long.shape[1]
    launch((count, across), pieces, out, long, count)


@cache
def _summing(kernel: Kernel, channels: int, dtype: torch.dtype, **options: Any) -> tuple[Launch, int, int]:
    """And how many lists a program sums, and how many blocks of columns there are."""
    shape = shape_of(channels)
    launch = kernel.launch(C=channels, CHUNK=CHUNK, ACC=accumulator(dtype), UNROLL=UNROLL, **shape, **options)
    return launch, shape["ROWS"], cdiv(channels, shape["COLS"])


@cache
def _plain(channels: int, stride: int, weighted: bool, dtype: torch.dtype) -> tuple[Launch, int, int]:
    return _summing(_sum_kernel, channels, dtype, STRIDE=stride, WEIGHTED=weighted, **registers(dtype, 72))


def launch_sums(kernel: Kernel, lists: Lists, beside: Tensor | None, table: Tensor, *read: Tensor, **options: Any) -> Tensor:
    """[lists, C]: what a kernel sums of the rows that lists name. ``beside``: what each entry has beside it."""
    return _summed(_summing(kernel, table.shape[1], table.dtype, **options), lists, beside, table, *read)


def _summed(how: tuple[Launch, int, int], lists: Lists, beside: Tensor | None, table: Tensor, *read: Tensor) -> Tensor:
    (launch, rows, across), count, more = how, lists.ptr.shape[0] - 1, lists.extra.shape[1]
    channels, index = table.shape[1], lists.index
    out = table.new_empty(count, channels)
    if not count or not channels:
        return out
    # without pieces nothing is written there
    pieces = out if not more and table.dtype in (torch.float32, torch.float64) else pieces_like(table, lists)
    launch(
        (cdiv(count + more, rows), across),
        table, *read, lists.ptr, index, index if beside is None else beside, lists.extra, out, pieces, count, more,
    )  # fmt: skip
    if more:
        add_pieces(pieces, out, lists.long, add=True)
    return out


def triton_sums(table: Tensor, lists: Lists) -> Tensor:
    """[lists, C], as ``enfa.nn.ops.segment.list_sums``."""
    if table.stride(-1) != 1:
        table = table.contiguous()
    weight = lists.weight
    return _summed(_plain(table.shape[1], table.stride(0), weight is not None, table.dtype), lists, weight, table)
