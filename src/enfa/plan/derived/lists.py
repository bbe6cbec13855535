"""How long the lists of a step are, and what they hold where a pool is no sum: their rows with multiplicities."""

import torch
from torch import Tensor

from enfa.plan.derived.maps import segment_ids, sorted_ptr
from enfa.plan.links import Sums
from enfa.plan.table import Table

__all__ = ["list_sizes", "written_out"]


def _counts(sums: Sums) -> Tensor:
    """int64: the sum of the counts of every list."""
    total = torch.zeros(len(sums.ptr) - 1, dtype=torch.int64, device=sums.ptr.device)
    return total.index_add_(0, segment_ids(sums.ptr, len(sums.row)), sums.count.long())


def list_sizes(table: Table) -> Tensor:
    """int64 [R]: how many rows every list has, at least 1."""
    if "sizes" not in table.cache:
        assert table.sums is not None
        sizes = _counts(table.sums)
        if table.parts is not None:
            parts = table.parts
            segment = segment_ids(parts.ptr, len(parts.row))
            sizes = sizes.new_zeros(len(parts.ptr) - 1).index_add_(0, segment, sizes[parts.row])
        table.cache["sizes"] = sizes.clamp(min=1)
    return table.cache["sizes"]


def written_out(table: Table, rows: int) -> Sums:
    """Every list of rows with their multiplicities, all > 0. As long as the bags: n squared at worst."""
    if "written out" not in table.cache:
        table.cache["written out"] = _written_out(table, rows)
    return table.cache["written out"]


def _written_out(table: Table, rows: int) -> Sums:
    sums, parts = table.sums, table.parts
    assert sums is not None
    if parts is None:
        key = segment_ids(sums.ptr, len(sums.row)) * rows + sums.row
        count, lists = sums.count.long(), len(sums.ptr) - 1
    else:
        lists = len(parts.ptr) - 1
        length = sums.ptr.diff()[parts.row].long()
        owner = torch.repeat_interleave(segment_ids(parts.ptr, len(parts.row)), length)
        first = torch.repeat_interleave(sums.ptr[parts.row].long() - length.cumsum(0) + length, length)
        entry = first + torch.arange(len(owner), device=owner.device)
        key, count = owner * rows + sums.row[entry], sums.count[entry].long()
    key, place = torch.unique(key, return_inverse=True)
    count = torch.zeros_like(key).index_add_(0, place, count)
    key, count = key[count > 0], count[count > 0]
    return Sums(sorted_ptr(key // max(rows, 1), lists), key % max(rows, 1), count)
