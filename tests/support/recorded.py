"""CUDA graphs without a GPU: operations are recorded one by one, and replayed without the Python that called them.

What a graph does not know of, a recording does not know of either: attributes that Python reads, data that was put into a
parameter after the capture, numbers that Python drew. It is replayed into the memory that the capture wrote into.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

T = TypeVar("T")

# What would have to wait for a GPU: a capture refuses it.
_WAITS = {torch.ops.aten._local_scalar_dense.default, torch.ops.aten.nonzero.default, torch.ops.aten.equal.default}


def _memory(value: Any) -> dict[int, Tensor]:
    return {t.untyped_storage().data_ptr(): t for t in tree_leaves(value) if isinstance(t, Tensor) and t.numel()}


def _by_memory(value: Any) -> Any:
    """The same tensors under names of their own: whatever becomes of those of Python, this memory is meant. They have versions
    of their own, too: autograd does not see what a graph writes."""
    return tree_map_only(Tensor, lambda t: t.data, value)


class _Recording(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.operations: list[tuple[Any, Any, Any, Any]] = []
        self.found: dict[int, tuple[Tensor, Tensor]] = {}  # memory from outside, and what was there
        self.made: dict[int, Tensor] = {}

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function in _WAITS:
            raise RuntimeError(f"operation not permitted when stream is capturing: {function}")
        args_there, kwargs_there = _by_memory((args, kwargs or {}))
        for place, tensor in _memory((args_there, kwargs_there)).items():
            if place not in self.made and place not in self.found:
                self.found[place] = tensor, _bytes(tensor).clone()
        result = function(*args, **(kwargs or {}))
        there = _by_memory(result)
        self.made |= {place: t for place, t in _memory(there).items() if place not in self.found}
        self.operations.append((function, args_there, kwargs_there, there))
        return result

    def undo(self) -> None:
        """Capturing computes nothing. What was made is not there yet: numbers that nobody replayed are not to be read."""
        for tensor, before in self.found.values():
            _bytes(tensor).copy_(before)
        for tensor in self.made.values():
            if tensor.is_floating_point():  # an index could not be read in the capture of a backward pass
                _bytes(tensor).fill_(255)


def _bytes(tensor: Tensor) -> Tensor:
    """All memory that this tensor is part of."""
    storage = tensor.untyped_storage()
    return torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),))


class _Graph:
    def __init__(self, operations: list[tuple[Any, Any, Any, Any]]) -> None:
        self.operations = operations

    def replay(self) -> None:
        # operations were recorded below all of these
        with torch.inference_mode(False), torch.no_grad(), torch.autocast("cpu", enabled=False):
            for function, args, kwargs, places in self.operations:
                read = _memory((args, kwargs))
                for place, value in zip(tree_leaves(places), tree_leaves(function(*args, **kwargs)), strict=True):
                    # a view, and what was changed in its place, are where they belong
                    if isinstance(value, Tensor) and value.numel() and value.untyped_storage().data_ptr() not in read:
                        place.copy_(value)


class Recorded:
    """In place of :class:`enfa.nn.cuda.record.Recorder`, on the CPU."""

    device = torch.device("cpu")

    def pool(self) -> object:
        return object()

    def record(self, work: Callable[[], T], pool: Any) -> tuple[_Graph, T]:
        recording = _Recording()
        try:
            with recording:
                result = work()
        finally:
            recording.undo()
        return _Graph(recording.operations), result

    def rehearsal(self) -> AbstractContextManager[None]:
        return nullcontext()

    def capturing(self) -> bool:
        return False

    def stream(self) -> None:
        return None

    def stream_number(self) -> int:
        return 0
