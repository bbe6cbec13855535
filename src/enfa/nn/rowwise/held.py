"""Operations on Rows that are held back until the next is known: a linear, the norm and the ReLU after it run as one kernel.

Nothing else changes. What is held back is computed as soon as its values are read, and gradients are recorded if they were
when it was called. A norm whose result is thrown away is computed, too: its running statistics count the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from enfa.nn.counted import Counted, Running, Shifted, uncounted_rows, update_running
from enfa.nn.linear import WIDE, fusable, linear_of
from enfa.nn.rowwise.rows import Rows
from enfa.nn.triton import accelerated

__all__ = ["HeldColumns", "HeldLinear", "HeldNorm", "holds"]


def holds(rows: Rows) -> bool:
    """Whether the next operation may see this one: not where precision or what is saved for gradients depends on the moment."""
    return (
        not rows.bag.tracing
        and not torch.is_autocast_enabled(rows.device.type)
        and not torch.is_inference_mode_enabled()
        and torch._C._current_graph_task_id() == -1  # recomputed in a backward pass
        and torch._C._autograd._top_saved_tensors_default_hooks(False) is None  # checkpointed
    )


class HeldLinear:
    """``rows @ weight.T + bias``."""

    def __init__(self, rows: Rows, weight: Tensor, bias: Tensor | None) -> None:
        self.rows, self.weight, self.bias, self.records = rows, weight, bias, torch.is_grad_enabled()
        self.width, self.dtype = len(weight), rows.dtype

    def tensor(self, relu: bool) -> Tensor:
        with torch.set_grad_enabled(self.records):
            return linear_of(self.rows.value, self.weight, self.bias, relu)


class HeldNorm:
    """BatchNorm in training: each row counts as often as it stands for something."""

    def __init__(
        self, rows: Rows, weight: Tensor | None, bias: Tensor | None, eps: float, running: Running | None
    ) -> None:
        table = rows.bag.tables[rows.number]
        assert table.copies is not None
        self.rows, self.weight, self.bias, self.eps, self.running = rows, weight, bias, eps, running
        self.copies, self.total, self.records = table.copies, table.total, torch.is_grad_enabled()
        self.width, self.dtype = rows.shape[1], rows.dtype

    def tensor(self, relu: bool) -> Tensor:
        running, self.running = self.running, None  # computed a second time, it is the same call
        with torch.set_grad_enabled(self.records):
            return self._fused(relu, running) if self._whole() and accelerated(self.copies) else self._plain(relu, running)

    def __del__(self) -> None:
        if self.running is not None and self.total:
            self.tensor(False)

    def _whole(self) -> bool:
        """Our own kernels know no norm that has a weight and no bias, or the other way round."""
        return (self.weight is None) == (self.bias is None)

    def _linear(self) -> HeldLinear | None:
        """What comes before the norm, where nothing has asked for its values so far and our own kernels compute it."""
        held = self.rows.held
        if not isinstance(held, HeldLinear) or self.rows.activated:
            return None
        return held if fusable(held.rows, held.weight, held.bias) else None

    def _fused(self, relu: bool, running: Running | None) -> Tensor:
        from enfa.nn.triton.linear_norm import Normed, linear_norm
        from enfa.nn.triton.norm import counted_norm

        kernel = _by_kernel(running)
        rest: Any = (self.weight, self.bias, self.copies, self.eps, relu, kernel)
        linear = self._linear()
        if linear is None:
            out, saved, total = counted_norm(self.rows.value, *rest)
        elif (inner := self._inner(linear)) is None:
            out, saved, total = linear_norm(linear.rows.value, linear.weight, linear.bias, *rest)
        else:
            z, of_inner = inner
            before: HeldNorm = linear.rows.held  # type: ignore[assignment]
            normed = Normed(of_inner, before.weight, before.bias)
            out, saved, total = linear_norm(z, linear.weight, linear.bias, *rest, normed)
        if running is not None and kernel is None:
            update_running(running, saved[0], saved[2], total)
        return out

    def _inner(self, linear: HeldLinear) -> tuple[Tensor, Tensor] | None:
        """Rows before the norm and ReLU that a wide linear reads, and normalises as it does, and their statistics."""
        from enfa.nn.triton.linear_norm import linear_norm

        norm = linear.rows.held
        if not isinstance(norm, HeldNorm) or not linear.rows.activated or max(linear.weight.shape) <= WIDE or not norm._whole():
            return None
        first, running = norm._linear(), _by_kernel(norm.running)
        if first is None or (norm.running is not None and running is None):
            return None
        norm.running = None
        rest: Any = (norm.weight, norm.bias, norm.copies, norm.eps, True, running)
        z, saved, _ = linear_norm(first.rows.value, first.weight, first.bias, *rest, later=True)
        return z, saved

    def _plain(self, relu: bool, running: Running | None) -> Tensor:
        held, uncounted = self.rows.held, uncounted_rows(self.copies)
        if isinstance(held, HeldLinear) and not self.rows.activated and held.bias is not None and not self.rows.is_cuda:
            x = Shifted.apply(held.rows.value, held.weight, held.bias, uncounted)
        else:
            x = self.rows.value
        # counts and sums do not fit into 8 or 11 bits; the result has the type of the rows, as PyTorch's own
        wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        with torch.autocast(x.device.type, enabled=False):
            weight, bias = (None if w is None else w.to(wide.dtype) for w in (self.weight, self.bias))
            out, mean, var, total = Counted.apply(wide, weight, bias, self.copies.to(wide.dtype), uncounted, self.eps, None)
        if running is not None and self.total:
            update_running(running, mean, var, total)
        out = out.to(x.dtype)
        return torch.relu(out) if relu else out


class HeldColumns:
    """Rows of several tables beside each other: a pool reads each in its own table, which is smaller the earlier it is."""

    def __init__(self, parts: Sequence[Rows], number: int) -> None:
        self.parts, self.number, self.records = list(parts), number, torch.is_grad_enabled()
        self.width, self.dtype = sum(int(part.shape[1]) for part in parts), parts[0].dtype

    @staticmethod
    def holds(parts: Any) -> bool:
        """Whether these are Rows of several tables, which differ in nothing else."""
        rows = isinstance(parts, (list, tuple)) and all(isinstance(part, Rows) and part.number >= 0 for part in parts)
        return rows and len({part.number for part in parts}) > 1 and len({part.dtype for part in parts}) == 1

    def tensor(self, relu: bool) -> Tensor:
        with torch.set_grad_enabled(self.records):
            found = torch.cat([part.bag.moved(part, self.number) for part in self.parts], 1)
            return torch.relu(found) if relu else found


@cache
def _not_counted(device: torch.device) -> Tensor:
    """What kernels count calls in where the module has done so."""
    return torch.zeros((), dtype=torch.int64, device=device)


def _by_kernel(running: Running | None) -> tuple[Tensor, Tensor, Tensor, float] | None:
    """Running statistics that a kernel updates: cumulative averages are not among them."""
    if running is None or running[3] is None:
        return None
    mean, var, calls, momentum = running
    return mean, var, _not_counted(mean.device) if calls is None else calls, momentum
