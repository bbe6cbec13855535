"""BatchNorm that counts each row as often as it occurs in the conventional model."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from enfa.nn.blocks import across, counted
from enfa.nn.linear import fusable, plain
from enfa.nn.rows import current_rows
from enfa.nn.triton import accelerated

__all__ = ["CountedBatchNorm", "normed"]


def _reduced(value: Tensor, group: Any) -> Tensor:
    """Summed over ranks, where there are several."""
    if group is not None:
        dist.all_reduce(value, group=group)
    return value


def _activated(x: Tensor, relu: bool) -> Tensor:
    return torch.relu(x) if relu else x


def normed(norm: nn.Module, x: Tensor, relu: bool, linear: nn.Linear | None = None) -> Tensor:
    """norm(linear(x)), and a ReLU behind it, in one go where the norm can."""
    if isinstance(norm, CountedBatchNorm):
        return norm(x, relu, linear)
    return _activated(norm(x if linear is None else linear(x)), relu)


class _Shifted(torch.autograd.Function):
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


class _Counted(torch.autograd.Function):
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


class CountedBatchNorm(nn.BatchNorm1d):
    """:class:`torch.nn.BatchNorm1d` over rows that stand for ``copies`` rows of the conventional model each.

    Statistics, running buffers and gradients are those of BatchNorm on all copies. Outside an executor, where every
    row counts once, it is an ordinary BatchNorm. In distributed training the weighted sums are reduced over ranks.
    ``CountedBatchNorm.convert(module)`` replaces every BatchNorm in a module, as
    ``torch.nn.SyncBatchNorm.convert_sync_batchnorm`` does.
    """

    def forward(self, x: Tensor, relu: bool = False, linear: nn.Linear | None = None) -> Tensor:
        """``relu``: the activation behind it; ``linear``: what comes before it. Together they cost less."""
        rows, group = current_rows(), _group() if self.training else None
        counts = rows is not None and (self.training or self.running_mean is None)
        if linear is not None and (not plain(linear) or torch.is_autocast_enabled(x.device.type)):
            x, linear = linear(x), None
        whole = (self.weight is None) == (self.bias is None)  # our own kernels know no norm with one of them
        fused = linear is not None and counts and group is None and whole and fusable(linear, x)
        if linear is not None and not fused:
            shift = counts and linear.bias is not None
            x, linear = _Shifted.apply(x, linear.weight, linear.bias) if shift else linear(x), None
        if x.dtype in (torch.float16, torch.bfloat16) and torch.is_autocast_enabled(x.device.type):
            x = x.float()  # counts and sums do not fit into 8 or 11 bits: go on in float32, as LayerNorm does
        if rows is None and group is None:
            return _activated(super().forward(x), relu)
        if x.ndim != 2 or (rows is not None and len(x) != len(rows.copies)):
            count = "any number" if rows is None else str(len(rows.copies))
            raise ValueError(f"Expected {count} rows in flight as [rows, channels], got {list(x.shape)}")
        if not self.training and self.running_mean is not None:
            return _activated(super().forward(x), relu)
        if rows is not None and group is None and rows.total == 1:
            raise ValueError("Expected more than 1 (subgraph, node) pair to compute BatchNorm statistics, got 1")
        updates = self.training and self.running_mean is not None
        if rows is not None and group is None and whole and accelerated(x):
            tracks = updates and self.momentum is not None and self.num_batches_tracked is not None
            running: Any = (self.running_mean, self.running_var, self.num_batches_tracked, self.momentum)
            rest = (self.weight, self.bias, rows.copies, self.eps, relu, running if tracks else None)
            out, mean, var, total = self._on_cuda(x, linear, rest)
            updates = updates and not tracks
        else:
            with torch.autocast(x.device.type, enabled=False):
                copies = x.new_ones(len(x)) if rows is None else rows.copies.to(x.dtype)
                out, mean, var, total = _Counted.apply(x, self.weight, self.bias, copies, self.eps, group)
            out = _activated(out, relu)
        if updates:
            # a rank without rows takes the other ranks' statistics
            self._update(mean, var, total, rows is not None and rows.total == 0 and group is None)
        return out

    @staticmethod
    def _on_cuda(x: Tensor, linear: nn.Linear | None, rest: tuple[Any, ...]) -> tuple[Tensor, ...]:
        from enfa.nn.triton.linear_norm import linear_norm
        from enfa.nn.triton.norm import counted_norm

        return counted_norm(x, *rest) if linear is None else linear_norm(x, linear.weight, linear.bias, *rest)

    @torch.no_grad()
    def _update(self, mean: Tensor, var: Tensor, total: Tensor, empty: bool) -> None:
        assert self.running_mean is not None and self.running_var is not None
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        if empty:
            return
        factor: Any = self.momentum
        if factor is None:  # cumulative average
            assert self.num_batches_tracked is not None
            factor = 1.0 / self.num_batches_tracked.to(mean.dtype)
        unbiased = var * (total / (total - 1).clamp(min=1))
        self.running_mean.add_(factor * (mean - self.running_mean))
        self.running_var.add_(factor * (unbiased - self.running_var))

    @classmethod
    def convert(cls, module: nn.Module) -> nn.Module:
        """Replace every BatchNorm1d and SyncBatchNorm in ``module``, keeping parameters and buffers."""
        if isinstance(module, (nn.BatchNorm1d, nn.SyncBatchNorm)) and not isinstance(module, cls):
            new = cls(
                module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats
            )
            new.weight, new.bias = module.weight, module.bias
            new.running_mean, new.running_var = module.running_mean, module.running_var
            new.num_batches_tracked = module.num_batches_tracked
            return new.train(module.training)
        for name, child in list(module.named_children()):
            converted = cls.convert(child)
            if converted is not child:
                setattr(module, name, converted)
        return module


def _group() -> Any:
    """The process group to reduce over, or None for a single process."""
    if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        return dist.group.WORLD
    return None
