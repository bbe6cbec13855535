"""Gathers and sums over lists of rows, without atomic adds.

A sum runs forwards over the plan's own order and backwards over the transposed order, so each output row is written by
one reader, the result repeats bit for bit, and no message is ever stored. On CUDA the kernels are Triton's
(``enfa.nn.triton``); elsewhere both directions are ``embedding_bag``, the fastest such kernel that plain PyTorch has on
the CPU (10 times index_add_).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from enfa.nn.ops.function import applied, backward_once
from enfa.nn.triton import accelerated
from enfa.plan.derived.maps import incoming_map, merged_map, readers, segment_ids, sums_map, target_rows
from enfa.plan.derived.order import CHUNK, Lists, SparseMap
from enfa.plan.links import Links, Sums

__all__ = [
    "apply_map", "attended", "entry_sums", "gather", "link_sum", "list_sums", "merged_sum", "segment_ids", "segment_max",
    "segment_sum", "target_rows", "weighted_sum",
]  # fmt: skip

PIECE = 256  # entries of a list that are added up one after the other
MANY = 16 * PIECE // CHUNK  # a list with more pieces for a GPU than that is summed in pieces on the CPU, too


def _bag(index: Tensor, table: Tensor, ptr: Tensor, weight: Tensor | None = None) -> Tensor:
    if len(ptr) == 1:
        return table.new_zeros(0, table.shape[1])
    lists = len(ptr) - 1
    if ptr.device.type != "cpu":  # entries after the last list, in a padded plan: there PyTorch would add them to it
        ptr = F.pad(ptr, (0, 1), value=len(index))
    elif int(ptr[-1]) < len(index):
        index, weight = index[: ptr[-1]], None if weight is None else weight[: ptr[-1]]
    table = table.contiguous()
    found = F.embedding_bag(index, table, ptr, mode="sum", include_last_offset=True, per_sample_weights=weight)
    return found if len(found) == lists else found[:lists]  # a view of its own size may not be written into


def _bag_in_pieces(index: Tensor, table: Tensor, ptr: Tensor, weight: Tensor | None) -> Tensor:
    """embedding_bag adds one term after the other: over very many the errors add up (see :mod:`enfa.nn.ops.blocks`)."""
    if int(ptr.diff().max()) <= PIECE:
        return _bag(index, table, ptr, weight)
    cuts = torch.cat([ptr, torch.arange(PIECE, int(ptr[-1]), PIECE, dtype=ptr.dtype)]).unique()
    pieces = _bag(index, table, cuts, weight)
    return _bag_in_pieces(torch.arange(len(pieces)), pieces, torch.searchsorted(cuts, ptr), None)


@cache
def _kernel() -> Callable[[Tensor, Lists], Tensor]:
    """Imported where it is called; once, because a statement that imports takes a microsecond each time."""
    from enfa.nn.triton.sums import triton_sums

    return triton_sums


def list_sums(table: Tensor, lists: Lists) -> Tensor:
    """[lists, C]: for every list the weighted sum of the rows of ``table`` that it names."""
    if accelerated(table):
        return _kernel()(table, lists)
    weight = None if lists.weight is None else lists.weight.to(table.dtype)
    if table.device.type == "cpu" and lists.long.shape[1] and int((lists.long[2] - lists.long[1]).max()) > MANY:
        return _bag_in_pieces(lists.index, table, lists.ptr, weight)
    return _bag(lists.index, table, lists.ptr, weight)


def entry_sums(entries: Tensor, ptr: Tensor) -> Tensor:
    """Sums of consecutive entries, without a gradient."""
    return _bag(torch.arange(len(entries), dtype=ptr.dtype, device=ptr.device), entries, ptr)


class _Map(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, both: SparseMap) -> Tensor:
        ctx.back = both.backward
        return list_sums(table, both.forward)

    @staticmethod
    @backward_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return list_sums(grad, ctx.back), None


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, index: Tensor, back: Lists) -> Tensor:
        ctx.back = back
        return table.index_select(0, index)

    @staticmethod
    @backward_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return list_sums(grad, ctx.back), None, None


def _below(rows: Tensor) -> Tensor:
    """A row of zeros below, for entries behind the last list (:func:`segment_ids`)."""
    return F.pad(rows, (0, 0, 0, 1))


class _SegmentSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, entries: Tensor, ptr: Tensor, segment: Tensor) -> Tensor:
        ctx.segment = segment
        return entry_sums(entries, ptr)

    @staticmethod
    @backward_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return _below(grad).index_select(0, ctx.segment), None, None


class _Max(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, sums: Sums) -> Tensor:
        segment = segment_ids(sums.ptr, len(sums.row))
        values = table.index_select(0, sums.row)
        out = values.new_zeros(len(sums.ptr), table.shape[1])  # the last for entries that pad others
        out.scatter_reduce_(0, segment[:, None].expand_as(values), values, "amax", include_self=False)
        ctx.save_for_backward(out, table, segment)
        ctx.sums = sums
        return out[:-1].clone()  # a view may not be written into, and the backward pass reads this one

    @staticmethod
    @backward_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        out, table, segment = ctx.saved_tensors
        sums: Sums = ctx.sums
        # every (subgraph, node) pair that attains the maximum gets an equal part
        ties = (table.index_select(0, sums.row) == out.index_select(0, segment)) * sums.count[:, None].to(grad.dtype)
        total = entry_sums(ties, sums.ptr)
        share = _below(grad / total.clamp(min=1)).index_select(0, segment) * ties
        return list_sums(share, readers(sums.row, len(table), sums.cache, "readers")), None


def apply_map(table: Tensor, both: SparseMap) -> Tensor:
    """The sums of a sparse map over the rows of ``table``."""
    return applied(_Map, table, both)


def gather(table: Tensor, index: Tensor, cache: dict[str, Any], name: str) -> Tensor:
    """``table[index]``. The transposed order is kept in ``cache`` under ``name``."""
    if not table.requires_grad:
        return table.index_select(0, index)
    if table.ndim != 2:  # one number a row, or several heads
        flat = table.reshape(len(table), table.shape[1:].numel())
        return gather(flat, index, cache, name).view(len(index), *table.shape[1:])
    return applied(_Gather, table, index, readers(index, table.shape[0], cache, name))


def link_sum(table: Tensor, links: Links) -> Tensor:
    """For every row of a layer the sum of its incoming rows: [R, C]."""
    return apply_map(table, incoming_map(links, table.shape[0]))


def merged_sum(table: Tensor, links: Links) -> Tensor:
    """For every row of a layer the sum of its own row and its incoming rows: [R, C]."""
    return apply_map(table, merged_map(links, table.shape[0]))


def weighted_sum(table: Tensor, sums: Sums) -> Tensor:
    """Every entry of ``sums``, computed over the rows of ``table``."""
    return apply_map(table, sums_map(sums, table.shape[0]))


def segment_sum(entries: Tensor, ptr: Tensor, segment: Tensor) -> Tensor:
    """Sums of consecutive entries. ``segment`` is ``segment_ids(ptr, len(entries))``."""
    return applied(_SegmentSum, entries, ptr, segment)


def segment_max(table: Tensor, sums: Sums) -> Tensor:
    """The largest of the rows listed in ``sums`` (counts > 0), channel by channel; 0 for an empty list."""
    return applied(_Max, table, sums)


def attended(value: Tensor, score: Tensor, sums: Sums) -> Tensor:
    """The mean of the rows of every list, weighted by the softmax of their scores."""
    segment = segment_ids(sums.ptr, len(sums.row))
    listed = gather(score, sums.row, sums.cache, "readers")
    top = score.new_zeros(len(sums.ptr), score.shape[1])  # the last for entries that pad others
    top.scatter_reduce_(0, segment[:, None].expand_as(listed), listed.detach(), "amax", include_self=False)
    weight = (listed - top.index_select(0, segment)).exp() * sums.count[:, None].to(score.dtype)
    total = segment_sum(weight, sums.ptr, segment)
    part = weight * gather(value, sums.row, sums.cache, "readers")
    return segment_sum(part, sums.ptr, segment) / total.clamp(min=torch.finfo(total.dtype).tiny)
