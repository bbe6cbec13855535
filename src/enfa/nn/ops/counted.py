"""Weighted normalisation in plain operators, as autograd functions.

A row that stands for nothing may hold anything, NaN too, and 0 times that is no 0. It counts as the mean, comes out as the
bias, and no gradient comes from it. Sums over all rows are taken first and looked at then: a row must hardly ever be left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from enfa.nn.ops.blocks import across, counted
from enfa.nn.ops.function import backward_once

__all__ = ["Counted", "Running", "Shifted", "uncounted_rows", "update_running"]

Running = tuple[Tensor, Tensor, Tensor | None, float | None]  # mean, variance, number of calls, momentum


def _reduced(value: Tensor, group: Any) -> Tensor:
    """Summed over ranks, where there are several."""
    if group is not None:
        dist.all_reduce(value, group=group)
    return value


def uncounted_rows(copies: Tensor) -> Tensor | None:
    """The numbers of the rows that stand for nothing; None for none, and where to ask would mean to wait for a device."""
    if copies.device.type != "cpu" or not len(copies) or int(copies.min()) > 0:
        return None
    return (copies == 0).nonzero()[:, 0]


def _sum_of(x: Tensor, uncounted: Tensor | None, total: Callable[[Tensor], Tensor]) -> Tensor:
    """``total(x)``, in which every row that stands for nothing is multiplied by 0."""
    if uncounted is None:
        return total(x)
    if x.device.type == "cpu" and math.isfinite(float((found := total(x)).sum())):
        return found
    x = x.clone()
    x[uncounted] = 0
    return total(x)


class Shifted(torch.autograd.Function):
    """A linear whose bias has no gradient, because a norm behind it takes every shift away.

    What autograd would compute is 0 up to rounding, which Adam, dividing it by its own size, would turn into steps.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, uncounted: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.uncounted = uncounted
        return nn.functional.linear(x, weight, bias)

    @staticmethod
    @backward_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        of_x = grad @ weight if ctx.needs_input_grad[0] else None
        of_weight = _sum_of(x, ctx.uncounted, lambda x: across(grad, x))
        return of_x, of_weight, grad.new_zeros(len(weight)), None


class Counted(torch.autograd.Function):
    """Normalise with the weighted mean and variance: sum(c x) / n and sum(c (x - mean)^2) / n."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, copies: Tensor, uncounted: Tensor | None,
        eps: float, group: Any, running: Running | None,
    ) -> Tensor:  # fmt: skip
        if x.device.type != "cpu":
            uncounted = copies == 0
        shift = None
        if x.device.type == "cpu" and group is None and len(x):
            # Relative to one of them: equal rows then have exactly their own mean, whatever their number. A rounding error
            # there, divided by a variance of 0, would decide on which side of a ReLU they come out.
            shift = x[0] if uncounted is None else x[int(copies.argmax())]
            x = x - shift
        whole = _sum_of(x, uncounted, lambda x: counted(copies, x))
        # total and sum of rows in one message between ranks
        sums = _reduced(torch.cat([whole, copies.sum()[None]]), group)
        total = sums[-1].clamp(min=1)
        mean = sums[:-1] / total
        centred = x - mean if shift is None else x.sub_(mean)
        if uncounted is not None:
            centred[uncounted] = 0
        var = _reduced(counted(copies, centred.square()), group) / total
        rstd = (var + eps).rsqrt()
        scale = rstd if weight is None else rstd * weight
        out = centred * scale if bias is None else torch.addcmul(bias, centred, scale)
        ctx.save_for_backward(centred, rstd, scale, copies / total, weight)
        ctx.group, ctx.has_bias, ctx.uncounted = group, bias is not None, uncounted
        if running is not None:  # here, because checkpointing stops computing again where the last tensor is saved
            update_running(running, mean if shift is None else mean + shift, var, total)
        return out

    @staticmethod
    @backward_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        centred, rstd, scale, part, weight = ctx.saved_tensors
        grad_bias = grad.sum(0) if ctx.uncounted is None else counted((part > 0).to(grad.dtype), grad)
        grad_weight = (grad * centred).sum(0) * rstd
        all_bias, all_weight = _reduced(torch.stack([grad_bias, grad_weight]), ctx.group)
        # grad_x = scale (grad - part (sum grad + normal * sum(grad normal))), in three passes over the rows
        grad_x = torch.addcmul(-all_bias * scale, centred, -all_weight * rstd * scale)
        grad_x = grad_x.mul_(part[:, None]).addcmul_(grad, scale)
        if ctx.uncounted is not None:
            grad_x[ctx.uncounted] = 0
        return (
            grad_x,
            grad_weight if weight is not None else None,
            grad_bias if ctx.has_bias else None,
            *(None,) * 5,
        )


@torch.no_grad()
def update_running(running: Running, mean: Tensor, var: Tensor, total: Tensor) -> None:
    """The running statistics, by those of a batch."""
    of_mean, of_var, calls, momentum = running
    if calls is not None:
        calls.add_(1)
    factor: Any = momentum
    if factor is None:  # cumulative average
        assert calls is not None
        factor = 1.0 / calls.to(mean.dtype)
    of_mean.add_(factor * (mean - of_mean))
    of_var.add_(factor * (var * (total / (total - 1).clamp(min=1)) - of_var))
