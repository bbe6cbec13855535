"""BatchNorm and dropout on Rows: what the conventional model computes over all copies of a row."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from enfa.nn.bag.operations import refuse
from enfa.nn.bag.rows import EDGES, Rows
from enfa.nn.counted import Counted
from enfa.plan.identity import mix64
from enfa.plan.steps.identity import step_identities

__all__ = ["counted_batch_norm", "keyed_dropout"]


def counted_batch_norm(
    input: Rows,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Rows:
    """:func:`torch.nn.functional.batch_norm` in which each row counts as often as it stands for something."""
    x = input.value
    if not training:
        return input.of(F.batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps))
    if input.number == EDGES:
        raise refuse("batch_norm", "of edge features would need to count the edges of every kind")
    table = input.bag.tables[input.number]
    assert table.copies is not None
    if x.ndim != 2:
        raise refuse("batch_norm", f"in training takes Rows [rows, channels], not {list(x.shape)},")
    if table.total == 1:
        raise ValueError(f"Expected more than 1 of the {input.kind} to compute BatchNorm statistics, got 1")
    out, mean, var, total = Counted.apply(x, weight, bias, table.copies.to(x.dtype), None, eps, None)
    if running_mean is not None and running_var is not None and table.total:
        with torch.no_grad():
            running_mean.add_(momentum * (mean - running_mean))
            running_var.add_(momentum * (var * (total / (total - 1).clamp(min=1)) - running_var))
    return input.of(out)


def keyed_dropout(input: Rows, p: float = 0.5, training: bool = True, inplace: bool = False) -> Rows:
    """Masks are a function of a number drawn for the call, of what the row is, and of the channel: every plan has the same.

    The number comes from PyTorch's generator, so seeds and checkpointing work as they do for other dropout.
    """
    bag, x = input.bag, input.value
    if p > 0.0 and input.number != EDGES:
        bag.note_dropout()
    if not training or p == 0.0:
        return input
    if input.number == EDGES:
        raise refuse("dropout", "of edge features would draw once for all edges of a kind")
    if not 0.0 <= p < 1.0 or x.ndim != 2:
        raise ValueError(f"Expected dropout from 0 to below 1 of rows [rows, channels], got {p} and {list(x.shape)}")
    seed = torch.randint(2**62, ()).to(x.device)
    row = mix64(step_identities(bag, input.number), seed)
    channel = mix64(torch.arange(x.shape[1], device=x.device))
    drawn = mix64(row[:, None] + channel) >> 11  # 53 bits, from -2**52 on
    keep = drawn >= int((p - 0.5) * 2**53)
    return input.of(x * keep * (1.0 / (1.0 - p)))
