"""BatchNorm whose sums are those of all processes, over rows that count as often as they stand for something."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.overrides import has_torch_function_unary

from enfa.nn.ops.counted import uncounted_rows
from enfa.nn.ops.normalise import normalise

__all__ = ["CountedBatchNorm", "across_processes", "process_group"]


class CountedBatchNorm(nn.BatchNorm1d):
    """:class:`torch.nn.BatchNorm1d`, for several processes, too.

    On Rows any BatchNorm1d counts each row as often as it occurs in the conventional model. In distributed training the
    weighted sums of this one are reduced over ranks, as those of :class:`torch.nn.SyncBatchNorm` are.
    ``CountedBatchNorm.convert(module)`` replaces every BatchNorm in a module.
    """

    def forward(self, x: Tensor, among: Any = None) -> Tensor:
        """``among``, of Rows: bool Rows [rows, 1], which of them the statistics are taken of, or int64, how often each of them
        counts. In training those that do not come out as the bias, and no gradient comes from them: for a model that puts
        something else in their place."""
        if has_torch_function_unary(x):  # Rows of a bag bring their own counts
            kind: Any = type(x)  # of the two arguments only this one may speak for itself
            return kind.__torch_function__(CountedBatchNorm.forward, (kind,), (self, x, among))
        if among is not None:
            raise TypeError("Expected Rows for a BatchNorm among some of them, got a tensor: pick its rows beforehand")
        group = process_group() if self.training else None
        if group is None:
            return super().forward(x)
        if x.ndim != 2:
            raise ValueError(f"Expected rows as [rows, channels], got {list(x.shape)}")
        if x.dtype in (torch.float16, torch.bfloat16) and torch.is_autocast_enabled(x.device.type):
            x = x.float()  # counts and sums do not fit into 8 or 11 bits: go on in float32, as LayerNorm does
        running: Any = None
        if self.running_mean is not None:
            running = self.running_mean, self.running_var, self.num_batches_tracked, self.momentum
        return across_processes(x, torch.ones_like(x[:, 0]), self.weight, self.bias, self.eps, running, group)

    @classmethod
    def convert(cls, module: nn.Module) -> nn.Module:
        """Replace every BatchNorm1d and SyncBatchNorm in ``module``, keeping parameters and buffers. One with a ``forward`` of
        its own stays."""
        plain = type(module).forward in (nn.BatchNorm1d.forward, nn.SyncBatchNorm.forward)
        if isinstance(module, (nn.BatchNorm1d, nn.SyncBatchNorm)) and plain:
            new = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats)
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


def across_processes(
    x: Tensor, copies: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, running: Any, group: Any
) -> Tensor:
    """Normalised rows, by the statistics of all ranks; one without rows takes the others'."""
    return normalise(x, copies, uncounted_rows(copies), weight, bias, eps, group, running)
