"""Operations on Rows that are held back until the next one is known: see :mod:`enfa.nn.rowwise.fused`.

Nothing else changes. What is held back is computed as soon as its values are read, as it would have been when it was called:
gradients, autocast and saved tensors are those of the call. A norm whose result is thrown away is computed, too, because its
running statistics count the call; and before they are read or updated again, and before a model returns graphs.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from threading import local
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from enfa.nn.ops.counted import Running
from enfa.nn.ops.saved import saving_is_watched
from enfa.nn.rowwise.rows import Rows
from enfa.nn.triton import mixed

__all__ = ["Held", "HeldColumns", "held_back", "holds", "may_return", "pass_goes_on", "settle", "settle_norms"]

DEEPEST = 16  # operations that wait for each other: reading the last one calls them within each other


class _Pending(local):
    """Of this thread: another one may run another model on the same bag."""

    def __init__(self) -> None:
        self.rows: list[weakref.ref[Rows]] = []
        self.norms: list[weakref.ref[Rows]] = []  # those among them that have statistics to update
        self.over: weakref.ref[Any] | None = None  # a bag whose model has pooled it, and may return any moment


_pending = _Pending()


def holds(rows: Rows) -> bool:
    """Whether the next operation may see this one: not where precision or what is saved for gradients depends on the moment."""
    bag = rows.bag
    return (
        not bag.tracing
        and (not torch.is_autocast_enabled(bag.feature.device.type) or mixed(bag.feature))
        and not torch.is_inference_mode_enabled()
        and torch._C._current_graph_task_id() == -1  # recomputed in a backward pass
        and not saving_is_watched()  # checkpointed
        and not torch._C._len_torch_dispatch_stack()  # such modes see what is called in them, or change it
    )


def pass_goes_on(bag: Any, on: bool = True) -> None:
    """Of the model that runs on a bag; not ``on``: norms update their statistics at once from here, for it may return."""
    _pending.over = None if on else weakref.ref(bag)


def may_return(bag: Any) -> bool:
    return _pending.over is not None and _pending.over() is bag


def held_back(held: Held, like: Rows, relu: bool = False) -> Rows:
    """Rows of the table of others whose values are computed when they are read."""
    if held.depth > DEEPEST:
        return like.of(held.tensor(relu))
    new = Rows(None, like.bag, like.number)  # type: ignore[arg-type]
    new.held, new.activated = held, relu
    known, pending = weakref.ref(new), _pending.rows
    if len(pending) > 64:
        pending = _pending.rows = [known for known in pending if (rows := known()) is not None and rows.held is not None]
    pending.append(known)
    if held.running is not None:
        _pending.norms.append(known)
    return new


def settle(wanted: Callable[[Held], bool] = lambda held: True, among: list[weakref.ref[Rows]] | None = None) -> None:
    """Compute values that were held back, before something that they read is written into."""
    for known in reversed(_pending.rows if among is None else among):
        rows = known()
        # what is stale was left behind by an exception
        if rows is not None and rows.held is not None and wanted(rows.held) and not rows.held.stale():
            rows.value  # noqa: B018


def settle_norms(mean: Tensor | None = None) -> None:
    """Compute norms that have not updated their running statistics so far: all of them, or those with this mean."""
    waiting = [known for known in _pending.norms if (rows := known()) is not None and _updates(rows.held)]
    _pending.norms = waiting
    if waiting:
        settle(lambda held: held.running is not None and (mean is None or held.running[0] is mean), waiting)


def _updates(held: Held | None) -> bool:
    return held is not None and held.running is not None


def _autocast(rows: Rows) -> torch.dtype | None:
    """What autocast, where it is on, makes of operations on these rows."""
    kind = rows.bag.feature.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None


class Held:
    """An operation on Rows: what it reads, and how it was called. Its result has ``width`` columns of ``dtype``.

    ``records``: gradients are recorded. ``mixed``: the type that autocast asked for.
    """

    running: Running | None = None

    def __init__(self, reads: Sequence[Rows], width: int, *weights: Tensor | None) -> None:
        self.reads, self.width, self.dtype, self.records = list(reads), width, reads[0].dtype, torch.is_grad_enabled()
        self.mixed = _autocast(reads[0])
        self.depth, tensors = 1, [w for w in weights if w is not None]
        for rows in reads:
            held = rows.held
            if held is None:
                tensors.append(rows._value)
            elif held.depth >= self.depth:
                self.depth = 1 + held.depth
        self._versions = [(t, t._version) for t in tensors if not t.is_inference()]
        self._found: Tensor | None = None

    @property
    def found(self) -> bool:
        """Whether something has asked for its values, which are kept."""
        return self._found is not None

    def stale(self) -> bool:
        """Whether something that it reads was written into behind its back."""
        for tensor, version in self._versions:
            if tensor._version != version:
                return True
        for rows in self.reads:  # noqa: SIM110, as it costs half
            if rows.held is not None and rows.held.stale():
                return True
        return False

    def as_now(self) -> bool:
        """Whether an operation that is called now records gradients, and is mixed, as this one was."""
        return self.records == torch.is_grad_enabled() and self.mixed == _autocast(self.reads[0])

    def tensor(self, relu: bool) -> Tensor:
        """The values, with a ReLU after them; as they would have been when it was called."""
        if self._found is not None:
            if not relu:
                return self._found
            with self._called():
                return torch.relu(self._found)
        if self.stale():
            raise RuntimeError(
                "Expected values of Rows to be read before weights that they are computed with change, got them read after: "
                "read h.value in the hook or forward pass that keeps them"
            )
        if self.as_now() and holds(self.reads[0]) and not torch._C._len_torch_function_stack():  # nothing has changed since
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
        if self.mixed is not None or torch.is_autocast_enabled(kind):
            found.enter_context(torch.autocast(kind, self.mixed, enabled=self.mixed is not None))
        if torch.is_inference_mode_enabled():
            found.enter_context(torch.inference_mode(False))
        if torch._C._len_torch_dispatch_stack():
            found.enter_context(_disable_current_modes())
        if torch._C._len_torch_function_stack():  # which have seen the call
            found.enter_context(torch._C.DisableTorchFunction())
        if saving_is_watched():
            found.enter_context(torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x))
        found.enter_context(torch.set_grad_enabled(self.records))
        return found

    def computed(self, relu: bool) -> Tensor:
        """The same, called here and now."""
        raise TypeError(f"{type(self).__name__} must define computed")


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
