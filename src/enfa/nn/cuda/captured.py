"""What is done to a model, one batch after another, captured as CUDA graphs: one launch instead of hundreds.

A plan's arrays are inputs, packed into one block whose address never changes, so one captured step serves every batch
whose arrays have the same shapes; padding (``enfa.batch.PackedLoader``) makes those few.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from enfa.batch.static.arriving import OnDevice, Staged
from enfa.batch.static.packed import Packed
from enfa.nn.cuda.record import Recorder
from enfa.nn.cuda.rehearse import rehearse
from enfa.plan.derived.pack import layout_of, pack, unpack
from enfa.plan.derived.prepare import lean, prepare
from enfa.plan.table import Plan

__all__ = ["Graphed", "GraphedForward", "Staged"]

_BUFFERS = 3  # batches on the device at a time: one in use, one behind it, one arriving


@dataclass
class _Captured:
    graph: Any
    block: Tensor  # what the graph reads
    result: Tensor  # what it writes


class Graphed:
    """Something done to a model with a plan; captured on CUDA, done eagerly elsewhere.

    The first batch of a shape runs eagerly, the second is captured, all others are replayed. Batches are copied on a
    stream of their own while earlier ones are computed.
    """

    def __init__(self, model: nn.Module, *, autocast: torch.dtype | None = None, capture: bool = True) -> None:
        self.model, self.autocast = model, autocast
        self.device = next(model.parameters()).device
        on_cuda = self.device.type == "cuda"
        self.capture = capture and on_cuda
        self.captured: dict[Hashable, _Captured | None] = {}  # None: seen once, and run eagerly
        self.eager_steps = 0
        self.rehearses = False
        """Whether kernels are compiled beside each other before first steps: see :func:`rehearse`, for which models."""
        self._told: set[str] = set()
        self._memory = torch.cuda.graph_pool_handle() if self.capture else None
        self._copies = torch.cuda.Stream(self.device) if on_cuda else None
        self._buffers: list[Tensor | None] = [None] * _BUFFERS
        self._used: list[Any] = [None] * _BUFFERS  # events: the buffer has been read
        self._turn = 0

    def stage(self, batch: Plan | Packed) -> Staged:
        """Start moving a batch to the device. At most two that were staged may wait for their call."""
        if isinstance(batch, OnDevice) and batch.untouched() and not batch.relabelled():
            assert batch.staged is not None
            return batch.staged
        if isinstance(batch, Plan) and batch.device.type != "cpu":
            if self.capture and isinstance(batch, OnDevice):
                self._tell("labels or arrays of a batch were replaced, which the loss or the model would better do")
            return Staged(batch.feature, lambda _: batch, None)
        if isinstance(batch, Packed) and batch.bucket is not None and batch.block is not None:
            if self._copies is None:
                return Staged(batch.block, batch.bucket.view, ())
            return self._moved(batch, batch.block, batch.bucket.view, batch.bucket)
        plan = batch.plan if isinstance(batch, Packed) else batch
        needs = plan.program.needs
        plan = prepare(plan, needs)
        if self._copies is None:
            return Staged(plan.feature, lambda _: plan, ())
        plan = lean(plan, needs)
        # a batch that no bucket holds is one of its kind: not worth a graph
        key = None if isinstance(batch, Packed) else layout_of(plan)
        return self._moved(None, pack(plan).pin_memory(), lambda block: unpack(block, plan), key)

    def _moved(self, packed: Packed | None, block: Tensor, view: Callable[[Tensor], Plan], key: Hashable) -> Staged:
        turn, size = self._turn, block.numel()
        self._turn = (turn + 1) % _BUFFERS
        buffer = self._buffers[turn]
        if buffer is None or buffer.numel() < size:
            if buffer is not None:
                torch.cuda.current_stream(self.device).synchronize()
            buffer = self._buffers[turn] = torch.empty(size, dtype=torch.uint8, device=self.device)
            torch.cuda.current_stream(self.device).synchronize()  # whatever had this memory before is done
        with torch.cuda.stream(self._copies):
            if self._used[turn] is not None:
                self._used[turn].wait()
            there = buffer[:size]
            there.copy_(block, non_blocking=True)
            arrived = torch.cuda.Event()
            arrived.record()
        if packed is not None:
            packed.copied = arrived
        return Staged(there, view, key, arrived, turn)

    def __call__(self, batch: Plan | Packed | Staged) -> Tensor:
        """Returns a tensor on the device: nothing waits."""
        staged = batch if isinstance(batch, Staged) else self.stage(batch)
        staged.here()
        result = self._replayed(staged)
        if result is None:
            self.eager_steps += 1
            if self.rehearses:  # with a plan of its own, on which nothing is kept; another shape may have kernels of its own
                self.rehearses = rehearse(self.model, staged.view(staged.block), self.mixed)
            result = self.eagerly(staged.view(staged.block))
        if staged.buffer is not None:
            self._used[staged.buffer] = torch.cuda.Event()
            self._used[staged.buffer].record()
        return result

    def _replayed(self, staged: Staged) -> Tensor | None:
        if not self.capture or staged.key is None:
            return None
        if staged.key not in self.captured:
            self.captured[staged.key] = None
            return None
        found = self.captured[staged.key] or self._capture(staged)
        if found is None:
            return None
        found.block.copy_(staged.block)
        found.graph.replay()
        return found.result.clone()

    def run(self, batches: Iterable[Plan | Packed]) -> Iterator[Tensor]:
        """A call for every batch. The device is behind, so a batch is copied while the one before is computed."""
        for batch in batches:
            yield self(batch)

    @property
    def num_captured(self) -> int:
        """How many graphs there are."""
        return sum(graph is not None for graph in self.captured.values())

    def _capture(self, staged: Staged) -> _Captured | None:
        block = staged.block.clone()
        plan = staged.view(block)
        self.ready()
        try:
            graph, result = Recorder(self.device).record(lambda: self.work(plan), self._memory)
        except RuntimeError as error:
            self._tell(str(error))
            self.capture = False
            return None
        self.captured[staged.key] = _Captured(graph, block, result)
        return self.captured[staged.key]

    def _tell(self, why: str) -> None:
        if why not in self._told:
            self._told.add(why)
            warnings.warn(f"A step could not be captured and runs eagerly: {why}", stacklevel=5)

    def mixed(self) -> AbstractContextManager[Any]:
        return torch.autocast(self.device.type, self.autocast) if self.autocast is not None else nullcontext()

    def ready(self) -> None:
        """What is to be done before every capture."""

    def work(self, plan: Plan) -> Tensor:
        """What is captured."""
        raise TypeError(f"{type(self).__name__} must define work")

    def eagerly(self, plan: Plan) -> Tensor:
        return self.work(plan)


class GraphedForward(Graphed):
    """Predictions of a model in evaluation mode, as :class:`enfa.Step` makes steps of training.

    Weights may change between calls; the module must not be moved to another device.
    """

    @torch.no_grad()
    def work(self, plan: Plan) -> Tensor:
        with self.mixed():
            return self.model(plan)
