"""A training step captured as a CUDA graph: one transfer and one launch instead of hundreds.

A plan's arrays are inputs, packed into one block whose address never changes, so one captured step serves every batch
whose arrays have the same shapes; padding (``enfa.batch.pad_plan``) makes those few.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from enfa.plan.pack import Layout, layout_of, pack, unpack
from enfa.plan.prepare import lean, prepare
from enfa.plan.table import Plan

__all__ = ["GraphedStep", "Staged"]

Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass
class Staged:
    """A batch on its way to the device."""

    plan: Plan  # its arrays are parts of block
    block: Tensor
    layout: Layout
    arrived: Any = None  # a CUDA event


@dataclass
class _Captured:
    graph: Any
    block: Tensor  # what the graph reads
    loss: Tensor  # what it writes


class GraphedStep:
    """Forward, loss, backward and optimiser in one replayed CUDA graph.

    The first batch of a shape runs eagerly, the second is captured, all others are replayed; results are those of the
    eager step. On the CPU, and after a failed capture (with one warning), every step is eager. The optimiser must be
    able to run without the CPU, as ``torch.optim.Adam(..., capturable=True)`` can; its learning rates become tensors,
    which schedulers made afterwards change in place.

    Args:
        model: on the device to train on, in training mode.
        optimiser: over its parameters.
        loss: ``loss(predictions, plan.y) -> scalar``, without synchronising.
        autocast: None, or the dtype of mixed precision, such as ``torch.bfloat16``.
        clip_norm: the largest norm of all gradients together, or None.
        capture: False runs every step eagerly.

    Example::

        step = enfa.nn.GraphedStep(model, optimiser, loss)
        for plan in loader:
            total += step(plan)  # a tensor on the device: nothing waits
    """

    def __init__(
        self,
        model: nn.Module,
        optimiser: torch.optim.Optimizer,
        loss: Loss,
        *,
        autocast: torch.dtype | None = None,
        clip_norm: float | None = None,
        capture: bool = True,
    ) -> None:
        self.model, self.optimiser, self.loss = model, optimiser, loss
        self.autocast, self.clip_norm = autocast, clip_norm
        self.device = next(model.parameters()).device
        self.capture = capture and self.device.type == "cuda"
        self.captured: dict[Layout, _Captured | None] = {}  # None: seen once, and run eagerly
        self._memory = torch.cuda.graph_pool_handle() if self.capture else None
        self._copies = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None
        if self.capture:
            for group in optimiser.param_groups:
                if "capturable" in group:
                    group["capturable"] = True
                if not isinstance(group["lr"], Tensor):
                    group["lr"] = torch.tensor(float(group["lr"]), device=self.device)

    def stage(self, plan: Plan) -> Staged:
        """Start moving a plan to the device. Prepares it first, unless a loader has done that."""
        needs = self.model.needs
        if "bag" not in plan.readout.cache:
            plan = prepare(plan, needs)  # type: ignore[arg-type]
        if self._copies is None:
            return Staged(plan, plan.feature, ())
        plan = lean(plan, needs)  # type: ignore[arg-type]
        block = pack(plan)
        with torch.cuda.stream(self._copies):
            there = block.pin_memory().to(self.device, non_blocking=True)
            arrived = torch.cuda.Event()
            arrived.record()
        return Staged(unpack(there, plan), there, layout_of(plan), arrived)

    def __call__(self, plan: Plan | Staged) -> Tensor:
        """One training step. Returns the loss as a tensor on the device."""
        staged = plan if isinstance(plan, Staged) else self.stage(plan)
        if staged.arrived is not None:
            stream = torch.cuda.current_stream(self.device)
            stream.wait_event(staged.arrived)
            staged.block.record_stream(stream)
        if not self.capture or staged.layout not in self.captured:
            self.captured.setdefault(staged.layout, None)
            return self._eager(staged.plan)
        found = self.captured[staged.layout] or self._capture(staged)
        if found is None:
            return self._eager(staged.plan)
        found.block.copy_(staged.block)
        found.graph.replay()
        return found.loss.clone()

    def run(self, plans: Iterable[Plan]) -> Iterator[Tensor]:
        """A step for every plan; the next one is moved while this one is computed."""
        waiting: Staged | None = None
        for plan in plans:
            following = self.stage(plan)
            if waiting is not None:
                yield self(waiting)
            waiting = following
        if waiting is not None:
            yield self(waiting)

    def _step(self, plan: Plan) -> Tensor:
        mixed = torch.autocast(self.device.type, self.autocast) if self.autocast is not None else nullcontext()
        with mixed:
            out = self.model(plan)
            assert plan.y is not None
            loss = self.loss(out, plan.y)
        loss.backward()
        if self.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)
        self.optimiser.step()
        return loss.detach()

    def _eager(self, plan: Plan) -> Tensor:
        self.optimiser.zero_grad(set_to_none=True)
        return self._step(plan)

    def _capture(self, staged: Staged) -> _Captured | None:
        block = staged.block.clone()
        plan = unpack(block, staged.plan)
        self.optimiser.zero_grad(set_to_none=True)  # gradients are to live in the graph's own memory
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self._memory):
                loss = self._step(plan)
        except RuntimeError as error:
            warnings.warn(f"A training step could not be captured and runs eagerly: {error}", stacklevel=3)
            self.capture = False
            return None
        self.captured[staged.layout] = _Captured(graph, block, loss)
        return self.captured[staged.layout]
