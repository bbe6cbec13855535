"""Batches on their way to a device: packed ones, copied beside the computation, and looked at only when something asks.

Looking at a batch means making a hundred views of its block, which takes as long as a captured step. A captured model does not
look: it copies the block.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from enfa.batch.static.packed import Packed
from enfa.batch.static.padding import Bucket
from enfa.plan.derived.pack import pack, unpack
from enfa.plan.derived.prepare import lean
from enfa.plan.table import Plan

__all__ = ["Arrivals", "OnDevice", "Staged", "unpadded"]

_AHEAD = 3  # batches that the CPU may be ahead of a device: their blocks lie in its memory
_APART = ("y", "graph_ids")  # small, wanted without the rest, and kept after the batch


@dataclass
class Staged:
    """The block of a batch, on its way to the device."""

    block: Tensor
    view: Callable[[Tensor], Plan]  # the plan in a block
    key: Hashable  # batches with equal ones run through the same captured graph; None: one of its kind
    arrived: Any = None  # a CUDA event
    buffer: int | None = None  # where the block is to be used again: its number
    _waited: int | None = field(default=None, repr=False)  # the last stream that did: what asks again there has it already

    def here(self) -> Tensor:
        """The block, for what comes next on the current stream."""
        if self.arrived is not None:
            number = torch._C._cuda_getCurrentRawStream(self.block.device.index)
            if number != self._waited:
                self._waited = number
                self.arrived.wait()
                if self.buffer is None:
                    self.block.record_stream(torch.cuda.current_stream(self.block.device))
        return self.block


class OnDevice:
    """What a batch on a device is beside a plan. ``staged``: its block, as long as nothing else was put in its place."""

    staged: Staged | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "y":
            self.__dict__["_relabelled"] = True
        elif name in _names(type(self)):  # type: ignore[arg-type]
            if isinstance(self, _Arriving):
                _look(self)
            self.__dict__["staged"] = None
        elif not name.startswith("__"):
            self.__dict__["_more"] = name
        super().__setattr__(name, value)

    def to(self, device: Any, non_blocking: bool = False) -> Any:
        wanted, here = torch.device(device), None if self.staged is None else self.staged.block.device
        if here is not None and wanted.type == here.type and wanted.index in (None, here.index):
            return self
        return super().to(device, non_blocking)  # type: ignore[misc]

    def relabelled(self) -> bool:
        """Whether ``y`` is not that of the block any more."""
        own = self.__dict__
        return "_relabelled" in own or ("y" in own and _version(own["y"]) != own["_version"])

    def untouched(self) -> bool:
        """Whether a model that reads the block sees what this batch is."""
        if self.staged is None:
            return False
        own = self.__dict__
        if "_more" in own or ("graph_ids" in own and _version(own["graph_ids"]) not in (None, 0)):
            return False
        if "_relabelled" in own and "bucket" in own and (own["y"] is None) != (own["bucket"].part("y") is None):
            return False  # a model may ask whether there are any
        if "x_rows" not in own:  # not unpacked so far
            return True
        names, there = own["graph_attr"], own["_graph_attr"]
        inputs = (*(own[name] for name in ("x_rows", "edge_rows", "mark_rows", "edge_mark_rows")), *names.values())
        leaves = any(t is not None and t.requires_grad for t in inputs)
        return not leaves and names.keys() == there.keys() and all(names[name] is there[name] for name in there)


class _Arriving:
    """A batch that is still one packed block. Reading more than labels and a few numbers makes it an ordinary plan."""

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") or name in _AT_ONCE:
            return object.__getattribute__(self, name)
        own: dict[str, Any] = object.__getattribute__(self, "__dict__")
        if name in own:
            return own[name]
        if name in _APART and "bucket" in own:
            value = own[name] = _apart(own["staged"], own["bucket"], name)
            if name == "y":
                own["_version"] = _version(value)
            return value
        _look(self)
        return getattr(self, name)


_AT_ONCE = {"staged", "to", "relabelled", "untouched"}


def _version(y: Tensor | None) -> int | None:
    return None if y is None or y.is_inference() else y._version


def _apart(staged: Staged, bucket: Bucket, name: str) -> Tensor | None:
    part = bucket.part(name)
    # of its own: the labels of an epoch must not keep its blocks
    return None if part is None else part.view(staged.here()).clone()


def _look(batch: Any) -> None:
    own = batch.__dict__
    plan = own["staged"].view(own["staged"].here())
    kind: Any = type(plan)
    for name, value in vars(plan).items():
        own.setdefault(name, value.clone() if name in _APART and value is not None else value)
    own.setdefault("_version", _version(own["y"]))
    own["_graph_attr"] = dict(plan.graph_attr)
    batch.__class__ = _kinds(kind)[0]


@cache
def _names(kind: Any) -> frozenset[str]:
    return frozenset(f.name for f in fields(kind) if f.init)


@cache
def _kinds(kind: Any) -> tuple[type, type]:
    """Plans like these that are on a device: looked at, and not."""
    seen = type(kind.__name__, (OnDevice, kind), {"__module__": kind.__module__})
    return seen, type(kind.__name__, (_Arriving, seen), {"__module__": kind.__module__})


def arriving(staged: Staged, like: Plan, bucket: Bucket | None = None) -> Any:
    """A batch that was sent. ``like``: a plan of the same kind, with as many graphs."""
    kind: Any = type(like)
    found: Any = object.__new__(_kinds(kind)[1])
    found.__dict__.update(staged=staged, num_graphs=like.num_graphs)
    if bucket is not None:
        found.__dict__["bucket"] = bucket
    return found


@cache
def _copying(device: torch.device) -> Any:
    """One stream for all loaders: PyTorch keeps the memory of every stream apart."""
    return torch.cuda.Stream(device)


class Arrivals:
    """Batches of a :class:`PackedLoader` on a device, in the same order. One is copied while the one before is computed."""

    def __init__(self, batches: Iterable[Packed], device: torch.device) -> None:
        self.batches, self.device = batches, device
        self._copies = _copying(device) if device.type == "cuda" else None

    def __iter__(self) -> Iterator[Any]:
        begun: deque[Any] = deque()
        waiting: Any = None
        for packed in self.batches:
            sent = self._sent(packed)
            if waiting is not None:
                yield waiting
                self._keep_up(begun)
            waiting = sent
        if waiting is not None:
            yield waiting

    def _keep_up(self, begun: deque[Any]) -> None:
        """Wait where the device is so far behind that its memory would fill with batches."""
        if self._copies is not None:
            event = begun.popleft() if len(begun) == _AHEAD else torch.cuda.Event()
            event.synchronize()
            event.record(torch.cuda.current_stream(self.device))
            begun.append(event)

    def _sent(self, packed: Packed) -> Any:
        bucket = packed.bucket
        if bucket is not None and packed.block is not None:
            staged = self._staged(packed.block, bucket.view, bucket)
            packed.copied = staged.arrived
            return arriving(staged, bucket.skeleton, bucket)
        plan = packed.plan
        block = pack(plan)
        staged = self._staged(block.pin_memory() if self._copies is not None else block, partial(_unpacked, plan), None)
        return arriving(staged, plan)

    def _staged(self, block: Tensor, view: Callable[[Tensor], Plan], key: Hashable) -> Staged:
        if self._copies is None:
            return Staged(block.clone(), view, key)  # the loader's own is written again
        with torch.cuda.stream(self._copies):
            there = torch.empty(block.numel(), dtype=torch.uint8, device=self.device)
            there.copy_(block, non_blocking=True)
            arrived = torch.cuda.Event()
            arrived.record()
        return Staged(there, view, key, arrived)


def unpadded(plan: Plan) -> Packed:
    """A prepared plan as it is."""
    return Packed(np.empty(0, np.int64), None, None, lean(plan, plan.program.needs))


def _unpacked(plan: Plan, block: Tensor) -> Plan:
    return unpack(block, plan)
