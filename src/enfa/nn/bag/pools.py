"""Pools that are no sums, over the rows of every list, written out with their multiplicities."""

from __future__ import annotations

import torch
from torch import Tensor

from enfa.nn.ops.segment import gather, segment_sum
from enfa.plan.derived.maps import segment_ids
from enfa.plan.links import Sums

__all__ = ["attended"]


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
