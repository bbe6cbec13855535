"""Pools that are no sums, over the rows of every list, written out with their multiplicities."""

from __future__ import annotations

import torch
from torch import Tensor

from enfa.nn.segment import gather, segment_max, segment_sum
from enfa.plan.derive import segment_ids
from enfa.plan.table import Sums

__all__ = ["attended"]


def attended(value: Tensor, score: Tensor, sums: Sums) -> Tensor:
    """The mean of the rows of every list, weighted by the softmax of their scores."""
    segment = segment_ids(sums.ptr, len(sums.row))
    listed = gather(score, sums.row, sums.cache, "readers")
    top = segment_max(score.detach(), sums).index_select(0, segment)
    weight = (listed - top).exp() * sums.count[:, None].to(score.dtype)
    total = segment_sum(weight, sums.ptr, segment)
    part = weight * gather(value, sums.row, sums.cache, "readers")
    return segment_sum(part, sums.ptr, segment) / total.clamp(min=torch.finfo(total.dtype).tiny)
