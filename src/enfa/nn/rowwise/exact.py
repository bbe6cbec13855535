"""BatchNorm and dropout on Rows: what the conventional model computes over all copies of a row."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from enfa.nn.cuda.seeds import drawn, given
from enfa.nn.ops.counted import Running
from enfa.nn.ops.norm import CountedBatchNorm, across_processes, process_group
from enfa.nn.rowwise.fused import HeldNorm
from enfa.nn.rowwise.held import held_back, holds, may_return, settle, settle_norms
from enfa.nn.rowwise.layer_end import dropped
from enfa.nn.rowwise.refusal import refuse
from enfa.nn.rowwise.rows import Rows
from enfa.nn.triton import accelerated
from enfa.plan.derived.identity import mix64, step_identities

__all__ = ["counted_batch_norm", "counted_module", "keyed_dropout"]


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
    if input.number >= 0:
        input.bag.note_counts(training)
    if not training:
        settle_norms(running_mean)
        if torch.is_grad_enabled() and running_mean is not None and running_var is not None:
            running_mean, running_var = running_mean.clone(), running_var.clone()  # gradients need them as they are now
        return input.of(F.batch_norm(input.value, running_mean, running_var, weight, bias, False, momentum, eps))
    running = None if running_mean is None or running_var is None else (running_mean, running_var, None, momentum)
    return _normed(input, weight, bias, eps, running)


def _check(input: Rows, *weights: Tensor | None) -> None:
    """What a norm in training is applied to; what PyTorch would refuse is not held back."""
    if input.number < 0:
        raise refuse("batch_norm", f"of {input.kind} would need to count them", "use a layer norm, or normalise pairs or nodes")
    if input.ndim != 2:
        shape = list(input.value.shape)
        raise refuse("batch_norm", f"in training takes Rows [rows, channels], not {shape},", "use h.flatten(1)")
    width, fits = input.width, input.dtype.is_floating_point
    for w in weights:
        fits = fits and (w is None or w.shape[0] == width)
    if not fits:
        wanted = ", ".join(map(str, {len(w) for w in weights if w is not None})) or "any"
        raise ValueError(f"Expected {wanted} channels of floats for this BatchNorm, got {width} of {input.dtype}")


def _normed(
    input: Rows, weight: Tensor | None, bias: Tensor | None, eps: float, running: Running | None, copies: Tensor | None = None
) -> Rows:
    """``copies``: how often rows count, where that is not how often they stand for something."""
    _check(input, weight, bias, *(running or ())[:2])
    total = input.bag.tables[input.number].total if copies is None else _total(input, copies)
    if total == 1 and not input.bag.tracing:  # on one graph, whatever a batch has
        raise ValueError(
            f"Expected more than 1 of the {input.kind} to compute BatchNorm statistics, got 1: put another graph into the "
            f"batch (another batch_size, or drop_last=True), or take a norm without statistics (norm='layer')"
        )
    if total == 0 and running is not None:  # PyTorch's own counts the call, and leaves its statistics as they are
        if running[2] is not None:
            running[2].add_(1)
        running = None
    if running is not None:
        settle_norms(running[0])
    if holds(input) and not (running is not None and may_return(input.bag)):
        return held_back(HeldNorm(input, weight, bias, eps, running, copies, total), input)
    # a linear that was held back elsewhere is what it is when this is computed again, too
    input.value  # noqa: B018
    return input.of(HeldNorm(input, weight, bias, eps, running, copies, total).computed(False))


def _total(rows: Rows, copies: Tensor) -> int:
    """How many count. A device would have to be waited for: there it is taken for granted that some do where any do."""
    return int(copies.sum()) if copies.device.type == "cpu" else rows.bag.tables[rows.number].total


_COUNTS = (torch.bool, torch.int64)


def _picked(x: Rows, among: Any) -> tuple[Rows, Tensor]:
    """Rows, in the table in which those are found that say which of them count, and how often each does."""
    if not isinstance(among, Rows) or among.dtype not in _COUNTS or among.ndim != 2 or among.shape[1] != 1:
        raise TypeError(f"Expected bool or int64 Rows [rows, 1] for a BatchNorm among some rows, got {among!r}")
    number = x.bag.common([x, among], "batch_norm").number
    if number != x.number:
        x = Rows(x.bag.moved(x, number), x.bag, number)
    copies: Any = x.bag.tables[number].copies
    return x, copies * x.bag.moved(among, number)[:, 0]


def counted_module(norm: CountedBatchNorm, x: Rows, among: Rows | None = None) -> Rows:
    """An ordinary BatchNorm, for Rows count by themselves; but its sums are those of all processes."""
    copies: Any = None
    if among is not None:
        x, copies = _picked(x, among)
    training, mean, weight, bias = norm.training, norm.running_mean, norm.weight, norm.bias
    group = process_group() if training else None
    reads = training or mean is None
    if x.number >= 0:
        x.bag.note_counts(reads)
    if not reads:
        return counted_batch_norm(x, mean, norm.running_var, weight, bias, False, 0.0, norm.eps)
    running: Any = None
    if training and mean is not None:
        running = mean, norm.running_var, norm.num_batches_tracked, norm.momentum
    if group is None:
        return _normed(x, weight, bias, norm.eps, running, copies)
    _check(x, weight, bias, mean)
    copies = x.bag.tables[x.number].copies if copies is None else copies
    return x.of(across_processes(x.value, copies, weight, bias, norm.eps, running, group))


_BY_KERNEL = (torch.float32, torch.bfloat16)  # its factor is float32


def keyed_dropout(input: Rows, p: float = 0.5, training: bool = True, inplace: bool = False) -> Rows:
    """Masks are a function of a number drawn for the call, of what the row is, and of the channel: every plan has the same.

    The number comes from PyTorch's generator, so seeds and checkpointing work as they do for other dropout.
    """
    bag = input.bag
    if p > 0.0 and input.number >= 0:
        bag.note_dropout(training)
        bag.need(input.number, "identity")
    if not training or p == 0.0:
        return input
    if input.number < 0:
        raise refuse("dropout", f"of {input.kind} would draw once for all that are alike", "use it on pairs or nodes")
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"Expected a dropout probability from 0 to 1, got {p}")
    identity, seed = step_identities(bag, input.number), _drawn(bag.device)
    fits = accelerated(bag.feature) and input.dtype in _BY_KERNEL and input.ndim == 2
    if fits and bag.num_rows(input.number) and p < 1.0 and not inplace:
        from enfa.nn.triton.dropout import keyed_dropout as by_kernel
        from enfa.nn.triton.layer_end import Drop

        drop = Drop(identity.contiguous(), seed, p)
        found = dropped(input, drop)
        return input.of(by_kernel(input.value, *drop) if found is None else found)
    x, factor = input.value, 1.0 / (1.0 - p) if p < 1.0 else 0.0
    row = mix64(identity, mix64(seed))
    channel = mix64(torch.arange(x[:1].numel(), device=x.device))
    drawn = mix64(row[:, None] + channel) >> 11  # 53 bits, from -2**52 on
    keep = (drawn >= int((p - 0.5) * 2**53)).reshape(x.shape)
    if not inplace:
        return input.of(x * keep * factor)
    settle()
    input.value = x.mul_(keep).mul_(factor)
    return input


def _drawn(device: torch.device) -> Tensor:
    """On the device in a step that is captured, which then draws anew. Elsewhere on the CPU, whose generator checkpointing
    sets back whatever it is given; that of a device only for tensors among its arguments, and a bag is none. A captured model
    is given what was drawn there."""
    if (number := given()) is not None:
        return number
    if device.type == "cpu" or (device.type == "cuda" and torch.cuda.is_current_stream_capturing()):
        return torch.randint(2**62, (), device=device)
    return torch.full((), drawn(), device=device)
