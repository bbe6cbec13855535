"""BatchNorm and dropout on Rows: what the conventional model computes over all copies of a row."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from enfa.nn.counted import Counted, uncounted_rows
from enfa.nn.norm import CountedBatchNorm, process_group
from enfa.nn.rowwise.refusal import refuse
from enfa.nn.rowwise.rows import Rows
from enfa.plan.identity import mix64
from enfa.plan.steps.identity import step_identities

__all__ = ["counted_batch_norm", "counted_module", "keyed_dropout", "keyed_module"]


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
    if not isinstance(input, Rows):
        raise refuse("batch_norm", "takes Rows as its input and nowhere else")
    if not training:
        return input.of(F.batch_norm(input.value, running_mean, running_var, weight, bias, False, momentum, eps))
    out, mean, var, total = _normed(input, weight, bias, eps, None)
    if running_mean is not None and running_var is not None and input.bag.tables[input.number].total:
        with torch.no_grad():
            running_mean.add_(momentum * (mean - running_mean))
            running_var.add_(momentum * (var * (total / (total - 1).clamp(min=1)) - running_var))
    return out


def _normed(input: Rows, weight: Tensor | None, bias: Tensor | None, eps: float, group: Any) -> tuple[Any, ...]:
    """The rows, and mean, variance and number of what they stand for."""
    x = input.value
    if input.number < 0:
        raise refuse("batch_norm", f"of {input.kind} would need to count them", "use a layer norm, or normalise pairs or nodes")
    table = input.bag.tables[input.number]
    assert table.copies is not None
    if x.ndim != 2:
        raise refuse("batch_norm", f"in training takes Rows [rows, channels], not {list(x.shape)},", "use h.flatten(1)")
    if table.total == 1 and group is None:
        raise ValueError(f"Expected more than 1 of the {input.kind} to compute BatchNorm statistics, got 1")
    # counts and sums do not fit into 8 or 11 bits; the result has the type of the rows, as PyTorch's own
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    with torch.autocast(x.device.type, enabled=False):
        weight, bias = (None if w is None else w.to(wide.dtype) for w in (weight, bias))
        out, *rest = Counted.apply(wide, weight, bias, table.copies.to(wide.dtype), uncounted_rows(table.copies), eps, group)
    return input.of(out.to(x.dtype)), *rest


def counted_module(norm: CountedBatchNorm, x: Rows, relu: bool = False, linear: nn.Linear | None = None) -> Rows:
    """An ordinary BatchNorm, for Rows count by themselves; but its sums are those of all processes."""
    x = x if linear is None else linear(x)  # type: ignore[assignment, arg-type]
    group = process_group() if norm.training else None
    if group is None:
        out: Any = nn.BatchNorm1d.forward(norm, x)  # type: ignore[arg-type]
    else:
        out, mean, var, total = _normed(x, norm.weight, norm.bias, norm.eps, group)
        if norm.running_mean is not None:
            norm.update(mean, var, total, empty=False)
    return out.relu() if relu else out


def keyed_dropout(input: Rows, p: float = 0.5, training: bool = True, inplace: bool = False) -> Rows:
    """Masks are a function of a number drawn for the call, of what the row is, and of the channel: every plan has the same.

    The number comes from PyTorch's generator, so seeds and checkpointing work as they do for other dropout.
    """
    bag, x = input.bag, input.value
    if p > 0.0 and input.number >= 0:
        bag.note_dropout(training)
        bag.need(input.number, "identity")
    if not training or p == 0.0:
        return input
    if input.number < 0:
        raise refuse("dropout", f"of {input.kind} would draw once for all that are alike", "use it on pairs or nodes")
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"Expected a dropout probability from 0 to 1, got {p}")
    seed = torch.randint(2**62, (), device=x.device)  # a number drawn elsewhere would be the same in all captured steps
    row = mix64(step_identities(bag, input.number), seed)
    channel = mix64(torch.arange(x[:1].numel(), device=x.device))
    drawn = mix64(row[:, None] + channel) >> 11  # 53 bits, from -2**52 on
    keep = (drawn >= int((p - 0.5) * 2**53)).reshape(x.shape)
    factor = 1.0 / (1.0 - p) if p < 1.0 else 0.0
    if not inplace:
        return input.of(x * keep * factor)
    input.value = x.mul_(keep).mul_(factor)
    return input


def keyed_module(drop: Any, x: Rows) -> Rows:
    if drop.independent and drop.training and drop.p > 0.0:
        if x.bag.kind != "full":
            raise ValueError("Expected the full plan for independent dropout masks: other plans share rows")
        return Rows(F.dropout(x.value, drop.p), x.bag, x.number)
    return keyed_dropout(x, drop.p, drop.training)
