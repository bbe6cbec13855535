"""Weighted normalisation in plain operators, as autograd functions."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from enfa.nn.blocks import across, counted

__all__ = ["Counted", "Shifted"]


def _reduced(value: Tensor, group: Any) -> Tensor:
    """Summed over ranks, where there are several."""
    if group is not None:
        dist.all_reduce(value, group=group)
    return value


class Shifted(torch.autograd.Function):
    """A linear whose bias has no gradient, because a norm behind it takes every shift away.

    What autograd would compute is 0 up to rounding, which Adam, dividing it by its own size, would turn into steps.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return nn.functional.linear(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        of_x = grad @ weight if ctx.needs_input_grad[0] else None
        return of_x, across(grad, x), grad.new_zeros(len(weight))


class Counted(torch.autograd.Function):
    """Normalise with the weighted mean and variance: sum(c x) / n and sum(c (x - mean)^2) / n."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, copies: Tensor, eps: float, group: Any
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        # total and sum of rows in one message between ranks
        sums = _reduced(torch.cat([counted(copies, x), copies.sum()[None]]), group)
        total = sums[-1].clamp(min=1)
        mean = sums[:-1] / total
        centred = x - mean
        var = _reduced(counted(copies, centred.square()), group) / total
        rstd = (var + eps).rsqrt()
        scale = rstd if weight is None else rstd * weight
        out = centred * scale if bias is None else torch.addcmul(bias, centred, scale)
        ctx.save_for_backward(centred, rstd, scale, copies / total, weight)
        ctx.group, ctx.has_bias = group, bias is not None
        ctx.mark_non_differentiable(mean, var, total)
        return out, mean, var, total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        centred, rstd, scale, part, weight = ctx.saved_tensors
        grad_bias, grad_weight = grad.sum(0), (grad * centred).sum(0) * rstd
        all_bias, all_weight = _reduced(torch.stack([grad_bias, grad_weight]), ctx.group)
        # grad_x = scale (grad - part (sum grad + normal * sum(grad normal))), in three passes over the rows
        grad_x = torch.addcmul(-all_bias * scale, centred, -all_weight * rstd * scale)
        grad_x = grad_x.mul_(part[:, None]).addcmul_(grad, scale)
        return (
            grad_x,
            grad_weight if weight is not None else None,
            grad_bias if ctx.has_bias else None,
            *(None,) * 3,
        )
