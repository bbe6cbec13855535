"""Gathers and segment sums without atomic adds.

A sum over CSR segments runs forwards over the plan's own order and backwards over the transposed order, so each output
row is written by one reader, the result repeats bit for bit, and no message is ever stored. Both directions are
``embedding_bag``, which is the fastest such kernel that plain PyTorch has on the CPU (10 times index_add_).
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from enfa.plan.kernels.slice import counting_sort
from enfa.plan.table import Links, Sums

__all__ = [
    "gather", "link_sum", "segment_ids", "segment_max", "segment_sum", "target_rows", "transpose",
    "weighted_sum",
]  # fmt: skip


def _bag(index: Tensor, table: Tensor, ptr: Tensor, weight: Tensor | None = None) -> Tensor:
    if len(ptr) == 1:
        return table.new_zeros(0, table.shape[1])
    return F.embedding_bag(
        index, table.contiguous(), ptr, mode="sum", include_last_offset=True, per_sample_weights=weight
    )


def segment_ids(ptr: Tensor, total: int) -> Tensor:
    """int64 [total]: the segment of each entry."""
    count = ptr.diff()
    return torch.repeat_interleave(torch.arange(len(count), device=ptr.device), count, output_size=total)


def transpose(index: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """``(ptr[size+1], entry)``: for each value of ``index`` the entries that have it."""
    ptr = index.new_zeros(size + 1)
    if index.device.type == "cpu":
        entry = torch.empty_like(index)
        counting_sort(index.numpy(), ptr.numpy(), entry.numpy())
        return ptr, entry
    entry = torch.argsort(index, stable=True)
    torch.cumsum(torch.bincount(index, minlength=size), 0, out=ptr[1:])
    return ptr, entry


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, ptr: Tensor, index: Tensor, weight: Tensor | None, *back: Tensor) -> Tensor:
        ctx.back = back
        return _bag(index, table, ptr, weight)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        back_ptr, back_index, *weight = ctx.back
        return _bag(back_index, grad, back_ptr, *weight), None, None, None, *(None for _ in ctx.back)


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, index: Tensor, ptr: Tensor, entry: Tensor) -> Tensor:
        ctx.back = ptr, entry
        return table.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        ptr, entry = ctx.back
        return _bag(entry, grad, ptr), None, None, None


class _SegmentSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, entries: Tensor, ptr: Tensor, segment: Tensor) -> Tensor:
        ctx.segment = segment
        return _bag(torch.arange(len(entries), device=ptr.device), entries, ptr)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return grad.index_select(0, ctx.segment), None, None


class _Max(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, ptr: Tensor, row: Tensor, count: Tensor) -> Tensor:
        segment = segment_ids(ptr, len(row))
        values = table.index_select(0, row)
        out = values.new_zeros(len(ptr) - 1, table.shape[1])
        out.scatter_reduce_(0, segment[:, None].expand_as(values), values, "amax", include_self=False)
        ctx.save_for_backward(out, table, ptr, row, count, segment)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        out, table, ptr, row, count, segment = ctx.saved_tensors
        # every (subgraph, node) pair that attains the maximum gets an equal part
        ties = (table.index_select(0, row) == out.index_select(0, segment)) * count[:, None].to(grad.dtype)
        total = _bag(torch.arange(len(row), device=ptr.device), ties, ptr)
        share = (grad / total.clamp(min=1)).index_select(0, segment) * ties
        back_ptr, entry = transpose(row, len(table))
        return _bag(entry, share, back_ptr), None, None, None


def gather(table: Tensor, index: Tensor, cache: dict[str, Tensor], name: str) -> Tensor:
    """``table[index]``. The transposed order is kept in ``cache`` under ``name``."""
    if not table.requires_grad:
        return table.index_select(0, index)
    if name not in cache:
        cache[name], cache[name + ".entry"] = transpose(index, len(table))
    return _Gather.apply(table, index, cache[name], cache[name + ".entry"])


def link_sum(table: Tensor, links: Links) -> Tensor:
    """For every row of a layer the sum of its incoming rows: [R, C]."""
    if not table.requires_grad:
        return _bag(links.in_row, table, links.in_ptr)
    cache = links.cache
    if "sum" not in cache:
        cache["sum"], entry = transpose(links.in_row, len(table))
        cache["sum.target"] = target_rows(links)[entry]
    return _Sum.apply(table, links.in_ptr, links.in_row, None, cache["sum"], cache["sum.target"])


def target_rows(links: Links) -> Tensor:
    """int64 [M]: the row that each message goes to."""
    if "target" not in links.cache:
        links.cache["target"] = segment_ids(links.in_ptr, len(links.in_row))
    return links.cache["target"]


def weighted_sum(table: Tensor, sums: Sums) -> Tensor:
    """Every entry of ``sums``, computed over the rows of ``table``."""
    weight = sums.count.to(table.dtype)
    if not table.requires_grad:
        return _bag(sums.row, table, sums.ptr, weight)
    cache = sums.cache
    if "sum" not in cache:
        cache["sum"], cache["sum.entry"] = transpose(sums.row, len(table))
        cache["sum.target"] = segment_ids(sums.ptr, len(sums.row))[cache["sum.entry"]]
    back = cache["sum"], cache["sum.target"], weight[cache["sum.entry"]]
    return _Sum.apply(table, sums.ptr, sums.row, weight, *back)


def segment_sum(entries: Tensor, ptr: Tensor, segment: Tensor) -> Tensor:
    """Sums of consecutive entries. ``segment`` is ``segment_ids(ptr, len(entries))``."""
    return _SegmentSum.apply(entries, ptr, segment)


def segment_max(table: Tensor, sums: Sums) -> Tensor:
    """The largest of the rows listed in ``sums`` (counts > 0), channel by channel; 0 for an empty list."""
    return _Max.apply(table, sums.ptr, sums.row, sums.count)
