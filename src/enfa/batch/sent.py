"""Batches on their way from worker processes: one block of shared memory each.

A plan has dozens of arrays, a model of many steps hundreds, and PyTorch opens a connection for every tensor that it sends: up
to a second a batch, several times what cutting it takes.
"""

import io
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch import Tensor

from enfa.plan.derived.pack import Layout, places, views, write_all
from enfa.plan.table import Plan

__all__ = ["Sending", "received"]


class _Pickler(ForkingPickler):
    """Notes ordinary tensors, each once, instead of writing them. Others go the way that PyTorch has for them."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.tensors: list[Tensor] = []
        self._numbers: dict[int, int] = {}

    def persistent_id(self, found: Any) -> int | None:
        if type(found) is not Tensor or found.device.type != "cpu" or found.layout != torch.strided:
            return None
        if found.requires_grad or found.is_quantized or found.is_nested or found.is_conj() or found.is_neg():
            return None
        number = self._numbers.setdefault(id(found), len(self.tensors))
        if number == len(self.tensors):
            self.tensors.append(found)
        return number


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, tensors: list[Tensor]) -> None:
        super().__init__(file)
        self._tensors = tensors

    def persistent_load(self, number: Any) -> Tensor:
        return self._tensors[number]


@dataclass
class _Sent:
    block: Tensor  # all arrays of a batch, one behind the other
    layout: Layout  # their types and shapes
    rest: bytes  # everything else

    def pin_memory(self) -> "_Sent":
        """For a loader with ``pin_memory=True``."""
        return _Sent(self.block.pin_memory(), self.layout, self.rest)


class Sending:
    """A loader's ``collate_fn``: what worker processes make of a batch before it is sent. ``collate``: the user's own."""

    def __init__(self, collate: Callable[[Any], Any] | None = None) -> None:
        self.collate: Callable[[Any], Any] | None = collate
        if isinstance(collate, Sending):  # another loader's
            self.collate = collate.collate

    def __call__(self, batch: Any) -> Any:
        batch = batch if self.collate is None else self.collate(batch)
        return batch if torch.utils.data.get_worker_info() is None else _sent(batch)


def _sent(batch: Any) -> _Sent:
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(batch)
    layout = tuple((t.dtype, tuple(t.shape)) for t in pickler.tensors)
    at_of, total = places(layout)
    block = torch.empty(total, dtype=torch.uint8).share_memory_()  # before it is filled, or it would be copied
    write_all(pickler.tensors, at_of, block)
    return _Sent(block, layout, file.getvalue())


def received(batches: Iterable[Any]) -> Iterator[Any]:
    """The batches as they were; the arrays of one that was sent are parts of its block."""
    for batch in batches:
        yield _opened(batch) if isinstance(batch, _Sent) else batch


def _opened(sent: _Sent) -> Any:
    found = _Unpickler(io.BytesIO(sent.rest), list(views(sent.block, sent.layout))).load()
    if isinstance(found, Plan):
        for name in ("y", "graph_ids"):  # what loops keep: they would keep the whole block
            if isinstance(getattr(found, name), Tensor):
                setattr(found, name, getattr(found, name).clone())
    return found
