"""Operations on Rows that are held back until the next one is known: a linear, its norm and ReLU run as one kernel.

Nothing else changes. What is held back is computed as soon as its values are read, as it would have been when it was called:
gradients, autocast and saved tensors are those of the call. A norm whose result is thrown away is computed, too, because its
running statistics count the call; and before they are read or updated again, and before a model returns graphs.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache
from threading import local
from typing import Any

import torch
from torch import Tensor

from enfa.nn.ops.counted import Running, Shifted, normalise, uncounted_rows, update_running
from enfa.nn.ops.linear import WIDE, fusable, linear_of
from enfa.nn.rowwise.rows import Rows
from enfa.nn.triton import accelerated

__all__ = ["Held", "HeldColumns", "HeldLinear", "HeldNorm", "held_back", "holds", "settle", "settle_norms"]

DEEPEST = 16  # operations that wait for each other: reading the last one calls them within each other


class _Pending(local):
    """Of this thread: another one may run another model on the same bag."""

    def __init__(self) -> None:
        self.rows: list[weakref.ref[Rows]] = []


_pending = _Pending()


def holds(rows: Rows) -> bool:
    """Whether the next operation may see this one: not where precision or what is saved for gradients depends on the moment."""
    return (
        not rows.bag.tracing
        and not torch.is_autocast_enabled(rows.device.type)
        and not torch.is_inference_mode_enabled()
        and torch._C._current_graph_task_id() == -1  # recomputed in a backward pass
        and torch._C._autograd._top_saved_tensors_default_hooks(False) is None  # checkpointed
    )


def held_back(held: Held, like: Rows, relu: bool = False) -> Rows:
    """Rows of the table of others whose values are computed when they are read."""
    if held.depth > DEEPEST:
        return like.of(held.tensor(relu))
    new = like.of(None)  # type: ignore[arg-type]
    new.held, new.activated = held, relu
    if len(_pending.rows) > 64:
        _pending.rows = [known for known in _pending.rows if (rows := known()) is not None and rows.held is not None]
    _pending.rows.append(weakref.ref(new))
    return new


def settle(wanted: Callable[[Held], bool] = lambda held: True) -> None:
    """Compute values that were held back, before something that they read is written into."""
    for known in reversed(_pending.rows):
        rows = known()
        # what is stale was left behind by an exception
        if rows is not None and rows.held is not None and wanted(rows.held) and not rows.held.stale():
            rows.value  # noqa: B018


def settle_norms(mean: Tensor | None = None) -> None:
    """Compute norms that have not updated their running statistics so far: all of them, or those with this mean."""
    settle(lambda held: held.running is not None and (mean is None or held.running[0] is mean))


class Held:
    """An operation on Rows: what it reads, and how it was called. Its result has ``width`` columns of ``dtype``."""

    running: Running | None = None

    def __init__(self, reads: Sequence[Rows], width: int, *weights: Tensor | None) -> None:
        self.reads, self.width, self.dtype, self.records = list(reads), width, reads[0].dtype, torch.is_grad_enabled()
        self.depth: int = 1 + max(0 if rows.held is None else rows.held.depth for rows in reads)
        tensors = [*(rows.value for rows in reads if rows.held is None), *(w for w in weights if w is not None)]
        self._versions = [(t, t._version) for t in tensors if not t.is_inference()]
        self._found: Tensor | None = None

    def stale(self) -> bool:
        """Whether something that it reads was written into behind its back."""
        changed = any(tensor._version != version for tensor, version in self._versions)
        return changed or any(rows.held is not None and rows.held.stale() for rows in self.reads)

    def tensor(self, relu: bool) -> Tensor:
        """The values, with a ReLU after them; as they would have been when it was called."""
        if self._found is not None:
            with torch.set_grad_enabled(self.records):
                return torch.relu(self._found) if relu else self._found
        if self.stale():
            raise RuntimeError(
                "Expected values of Rows to be read before weights that they are computed with change, got them read after: "
                "read h.value in the hook or forward pass that keeps them"
            )
        if torch.is_grad_enabled() == self.records and holds(self.reads[0]):  # nothing has changed since
            found = self.computed(relu)
        else:
            with self._called():
                found = self.computed(relu)
        if not relu:
            self._found = found  # for the ReLU of the same rows
        return found

    def _called(self) -> ExitStack:
        """What it was called in, instead of what it is read in."""
        kind, found = self.reads[0].device.type, ExitStack()
        if torch.is_autocast_enabled(kind):
            found.enter_context(torch.autocast(kind, enabled=False))
        if torch.is_inference_mode_enabled():
            found.enter_context(torch.inference_mode(False))
        if torch._C._autograd._top_saved_tensors_default_hooks(False) is not None:
            found.enter_context(torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x))
        found.enter_context(torch.set_grad_enabled(self.records))
        return found

    def computed(self, relu: bool) -> Tensor:
        """The same, called here and now."""
        raise TypeError(f"{type(self).__name__} must define computed")


class HeldLinear(Held):
    """``rows @ weight.T + bias``."""

    def __init__(self, rows: Rows, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__([rows], len(weight), weight, bias)
        self.weight, self.bias = weight, bias

    def computed(self, relu: bool) -> Tensor:
        return linear_of(self.reads[0].value, self.weight, self.bias, relu)


class HeldNorm(Held):
    """BatchNorm in training: each row counts as often as it stands for something."""

    def __init__(self, rows: Rows, weight: Tensor | None, bias: Tensor | None, eps: float, running: Running | None) -> None:
        super().__init__([rows], rows.width, weight, bias)
        copies = rows.bag.tables[rows.number].copies
        assert copies is not None
        self.weight, self.bias, self.eps, self.copies, self.running = weight, bias, eps, copies, running

    def __del__(self) -> None:
        if self.running is not None and not self.stale():
            self.tensor(False)

    def computed(self, relu: bool) -> Tensor:
        running, self.running = self.running, None  # computed a second time, it is the same call
        return self._fused(relu, running) if self._whole() and accelerated(self.copies) else self._plain(relu, running)

    def _whole(self) -> bool:
        """Our own kernels know no norm that has a weight and no bias, or the other way round."""
        return (self.weight is None) == (self.bias is None)

    def _linear(self) -> HeldLinear | None:
        """What comes before the norm, where nothing has asked for its values so far."""
        (rows,) = self.reads
        if not isinstance(rows.held, HeldLinear) or rows.activated or rows.held.records != self.records:
            return None
        return rows.held

    def _fusable(self) -> HeldLinear | None:
        """The same, where our own kernels compute it."""
        linear = self._linear()
        return linear if linear is not None and fusable(linear.reads[0], linear.weight, linear.bias) else None

    def _fused(self, relu: bool, running: Running | None) -> Tensor:
        from enfa.nn.triton.linears.linear_norm import Normed, linear_norm
        from enfa.nn.triton.norm import counted_norm

        kernel = _by_kernel(running)
        rest = (self.weight, self.bias, self.copies, self.eps, relu, kernel)
        linear = self._fusable()
        if linear is None:
            out, saved, total = counted_norm(self.reads[0].value, *rest)
        elif (inner := self._inner(linear)) is None:
            out, saved, total = linear_norm(linear.reads[0].value, linear.weight, linear.bias, *rest)
        else:
            z, before = inner[0], Normed(*inner[1:])
            out, saved, total = linear_norm(z, linear.weight, linear.bias, *rest, before=before)
        if running is not None and kernel is None:
            update_running(running, saved[0], saved[2], total)
        return out

    def _inner(self, linear: HeldLinear) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None] | None:
        """Rows before the norm and ReLU that a wide linear reads, which it normalises as it reads them; statistics, weights."""
        from enfa.nn.triton.linears.linear_norm import linear_norm

        (rows,) = linear.reads
        norm = rows.held
        if not isinstance(norm, HeldNorm) or not rows.activated or norm.records != self.records or not norm._whole():
            return None
        first, running = norm._fusable(), _by_kernel(norm.running)
        if first is None or max(linear.weight.shape) <= WIDE or (norm.running is not None and running is None):
            return None
        norm.running = None
        rest = (norm.weight, norm.bias, norm.copies, norm.eps, True, running)
        z, saved, _ = linear_norm(first.reads[0].value, first.weight, first.bias, *rest, later=True)
        return z, saved, norm.weight, norm.bias

    def _plain(self, relu: bool, running: Running | None) -> Tensor:
        linear, uncounted = self._linear(), uncounted_rows(self.copies)
        if linear is not None and linear.bias is not None and self.copies.device.type == "cpu":
            x = Shifted.apply(linear.reads[0].value, linear.weight, linear.bias, uncounted)
        else:
            x = self.reads[0].value
        out = normalise(x, self.copies, uncounted, self.weight, self.bias, self.eps, None, running)
        return torch.relu(out) if relu else out


class HeldColumns(Held):
    """Rows of several tables beside each other: a pool reads each in its own table, which is smaller the earlier it is."""

    def __init__(self, parts: Sequence[Rows], number: int) -> None:
        super().__init__(parts, sum(part.width for part in parts))
        self.number = number

    @staticmethod
    def holds(parts: Any) -> bool:
        """Whether these are Rows of several tables, which differ in nothing else."""
        rows = isinstance(parts, (list, tuple)) and all(isinstance(part, Rows) and part.number >= 0 for part in parts)
        return rows and len({part.number for part in parts}) > 1 and len({(part.dtype, part.ndim) for part in parts}) == 1

    def computed(self, relu: bool) -> Tensor:
        found = torch.cat([part.bag.moved(part, self.number) for part in self.reads], 1)
        return torch.relu(found) if relu else found


@cache
def _not_counted(device: torch.device) -> Tensor:
    """What kernels count calls in where the module has done so."""
    return torch.zeros((), dtype=torch.int64, device=device)


def _by_kernel(running: Running | None) -> tuple[Tensor, Tensor, Tensor, float] | None:
    """Running statistics that a kernel updates: cumulative averages are not among them."""
    mean, var, calls, momentum = running or (None, None, None, None)
    if mean is None or var is None or momentum is None:
        return None
    return mean, var, _not_counted(mean.device) if calls is None else calls, momentum
