"""BatchNorm that counts each row as often as it occurs in the conventional model."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.overrides import handle_torch_function, has_torch_function_unary

from enfa.nn.counted import Counted, Shifted, uncounted_rows
from enfa.nn.linear import WIDE, fusable, hooked, plain
from enfa.nn.rows import Rows, rows_of
from enfa.nn.triton import accelerated

__all__ = ["CountedBatchNorm", "normed", "process_group"]


def _activated(x: Tensor, relu: bool) -> Tensor:
    return torch.relu(x) if relu else x


def normed(
    norm: nn.Module, x: Tensor, relu: bool, linear: nn.Linear | None = None,
    first: tuple[nn.Linear, nn.Module] | None = None,
) -> Tensor:  # fmt: skip
    """norm(linear(x)), and a ReLU behind it, in one go where the norm can.

    ``first``: another linear and norm, with a ReLU behind them, that x goes through before.
    """
    if first is not None:
        before, inner = first
        if linear is not None and _in_one_go(norm, linear, inner, before, x):
            return _pair(norm, linear, inner, before, x, relu)  # type: ignore[arg-type]
        x = normed(inner, x, True, before)
    if isinstance(norm, CountedBatchNorm):
        return norm(x, relu, linear)
    return _activated(norm(x if linear is None else linear(x)), relu)


def _in_one_go(norm: nn.Module, linear: nn.Linear, inner: nn.Module, before: nn.Linear, x: Tensor) -> bool:
    """Whether the second of two linears can normalise what it reads of the first. Narrow ones are fast enough."""
    norms, rows = (inner, norm), rows_of(norm)
    # somebody's own norm may compute something else
    if not all(type(n) is CountedBatchNorm and not hooked(n) for n in norms) or rows is None:
        return False
    wide = plain(linear) and max(linear.weight.shape) > WIDE
    return wide and inner.fuses(before, x, rows) and norm.fuses(linear, x, rows, len(before.weight))  # type: ignore[operator]


def _pair(
    norm: CountedBatchNorm, linear: nn.Linear, inner: CountedBatchNorm, before: nn.Linear, x: Tensor, relu: bool
) -> Tensor:
    from enfa.nn.triton.linear_norm import Normed

    rows = rows_of(inner)
    assert rows is not None
    z, saved = inner.on_cuda(x, before, True, rows, later=True)
    return norm.on_cuda(z, linear, relu, rows, Normed(saved, inner.weight, inner.bias))[0]


class CountedBatchNorm(nn.BatchNorm1d):
    """:class:`torch.nn.BatchNorm1d` over rows that stand for ``copies`` rows of the conventional model each.

    Statistics, running buffers and gradients are those of BatchNorm on all copies. Outside an executor, where every
    row counts once, it is an ordinary BatchNorm. In distributed training the weighted sums are reduced over ranks.
    ``CountedBatchNorm.convert(module)`` replaces every BatchNorm in a module, as
    ``torch.nn.SyncBatchNorm.convert_sync_batchnorm`` does.
    """

    def forward(self, x: Tensor, relu: bool = False, linear: nn.Linear | None = None) -> Tensor:
        """``relu``: the activation behind it; ``linear``: what comes before it. Together they cost less."""
        if has_torch_function_unary(x):  # Rows of a bag bring their own counts
            return handle_torch_function(CountedBatchNorm.forward, (x,), self, x, relu, linear)
        counts = self.training or self.running_mean is None
        rows, group = rows_of(self, counts), process_group() if self.training else None
        if linear is not None and rows is not None and self.fuses(linear, x, rows):
            return self.on_cuda(x, linear, relu, rows)[0]
        uncounted = uncounted_rows(rows.copies) if rows is not None and counts else None
        if linear is not None:
            own = plain(linear) and not torch.is_autocast_enabled(x.device.type)
            shift = rows is not None and counts and own and linear.bias is not None
            x = Shifted.apply(x, linear.weight, linear.bias, uncounted) if shift else linear(x)
        if x.dtype in (torch.float16, torch.bfloat16) and torch.is_autocast_enabled(x.device.type):
            x = x.float()  # counts and sums do not fit into 8 or 11 bits: go on in float32, as LayerNorm does
        if rows is None and group is None:
            return _activated(super().forward(x), relu)
        if x.ndim != 2 or (rows is not None and len(x) != len(rows.copies)):
            count = "any number" if rows is None else str(len(rows.copies))
            raise ValueError(f"Expected {count} rows in flight as [rows, channels], got {list(x.shape)}")
        if not counts:
            return _activated(super().forward(x), relu)
        if rows is not None and group is None and rows.total == 1:
            raise ValueError("Expected more than 1 (subgraph, node) pair to compute BatchNorm statistics, got 1")
        if rows is not None and group is None and self._whole() and accelerated(x):
            return self.on_cuda(x, None, relu, rows)[0]
        with torch.autocast(x.device.type, enabled=False):
            copies = x.new_ones(len(x)) if rows is None else rows.copies.to(x.dtype)
            out, mean, var, total = Counted.apply(x, self.weight, self.bias, copies, uncounted, self.eps, group)
        if self.training and self.running_mean is not None:
            # a rank without rows takes the other ranks' statistics
            self.update(mean, var, total, rows is not None and rows.total == 0 and group is None)
        return _activated(out, relu)

    def _whole(self) -> bool:
        """Our own kernels know no norm that has a weight and no bias, or the other way round."""
        return (self.weight is None) == (self.bias is None)

    def fuses(self, linear: nn.Linear, x: Tensor, rows: Rows, ins: int | None = None) -> bool:
        """Whether :meth:`on_cuda` computes this norm behind ``linear``, of x or of such rows with ``ins`` columns."""
        if x.ndim != 2 or len(x) != len(rows.copies) or rows.total == 1 or not fusable(linear, x, ins):
            return False
        counts = self.training or self.running_mean is None
        fits = self._whole() and len(linear.weight) == self.num_features
        return counts and fits and not (self.training and process_group() is not None)

    def on_cuda(
        self, x: Tensor, linear: nn.Linear | None, relu: bool, rows: Rows, before: Any = None, later: bool = False
    ) -> tuple[Tensor, Tensor]:
        """By our own kernels: the rows, and the mean, 1 / standard deviation and variance that they are normalised with."""
        from enfa.nn.triton.linear_norm import linear_norm
        from enfa.nn.triton.norm import counted_norm

        updates = self.training and self.running_mean is not None
        tracks = updates and self.momentum is not None and self.num_batches_tracked is not None
        running: Any = (self.running_mean, self.running_var, self.num_batches_tracked, self.momentum)
        rest = (self.weight, self.bias, rows.copies, self.eps, relu, running if tracks else None)
        if linear is None:
            out, saved, total = counted_norm(x, *rest)
        else:
            out, saved, total = linear_norm(x, linear.weight, linear.bias, *rest, before, later)
        if updates and not tracks:
            self.update(saved[0], saved[2], total, rows.total == 0)
        return out, saved

    @torch.no_grad()
    def update(self, mean: Tensor, var: Tensor, total: Tensor, empty: bool) -> None:
        """The running buffers, by statistics that were taken elsewhere."""
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
        # not named_children, which leaves out the second place of a module that stands in two
        for name, child in list(module._modules.items()):
            converted = child if child is None else cls.convert(child)
            if converted is not child:
                setattr(module, name, converted)
        return module


def process_group() -> Any:
    """The process group to reduce over, or None for a single process."""
    if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        return dist.group.WORLD
    return None
