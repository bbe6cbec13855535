"""The whole step of training in one captured graph, for several processes, too."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors
from torch.nn.parallel import DistributedDataParallel

from enfa.nn.cuda.aliases import aliased
from enfa.nn.cuda.captured import Graphed
from enfa.nn.cuda.side_stream import aside
from enfa.plan.table import Plan

__all__ = ["GraphedStep", "Step"]

Loss = Callable[[Tensor, Tensor], Tensor]


class Step(Graphed):
    """Forward, loss, backward, clipping and optimiser: on a GPU one replayed CUDA graph, elsewhere an eager step.

        step = enfa.Step(model, optimiser, F.cross_entropy)
        for batch in enfa.DataLoader(compiled, 128, shuffle=True, device="cuda"):
            loss = step(batch)  # a tensor on the device: nothing waits

    Args:
        model: in training mode, on its device; or a :class:`torch.nn.parallel.DistributedDataParallel` of it, whose gradients
            are then averaged over processes, and its buffers taken from the first, within the graph.
        optimiser: over its parameters: one of PyTorch's that has the option ``capturable`` (Adam, AdamW, RMSprop, …), or
            ``SGD(..., fused=True)``. Its learning rates become tensors, which schedules change in place.
        loss: ``loss(model(batch), batch.y) -> scalar``, without waiting for the device.
        autocast: None, or the dtype of mixed precision, such as ``torch.bfloat16``.
        clip_norm: the largest norm of all gradients together, or None.
        capture: False runs every step eagerly.
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
        self.parallel = model if isinstance(model, DistributedDataParallel) else None
        self._agreed = False
        if not hasattr(optimiser, "param_groups") or not callable(loss):
            got = ", ".join(type(given).__name__ for given in (model, optimiser, loss))
            raise TypeError(f"Expected enfa.Step(model, optimiser, loss), got {got}")
        if self.parallel is not None and any(p._backward_hooks for p in model.parameters()):
            raise ValueError("Expected parameters without hooks for a step under DistributedDataParallel, got some with hooks")
        inner: Any = model if self.parallel is None else self.parallel.module
        super().__init__(inner, autocast=autocast, capture=capture)
        self.optimiser, self.loss, self.clip_norm = optimiser, loss, clip_norm
        if self.capture:
            self._capturable()

    def _capturable(self) -> None:
        """The optimiser's numbers on the device. A state that was loaded may have brought others."""
        for group in self.optimiser.param_groups:
            if "capturable" in group:
                group["capturable"] = True
            rate = group["lr"]
            if not isinstance(rate, Tensor) or rate.device != self.device:
                group["lr"] = torch.tensor(float(rate), dtype=torch.float32, device=self.device)
        for state in self.optimiser.state.values():
            if isinstance(state.get("step"), Tensor) and state["step"].device != self.device:
                state["step"] = state["step"].to(self.device)

    def ready(self) -> None:
        self._capturable()
        self.optimiser.zero_grad(set_to_none=True)  # gradients are to live in the graph's own memory

    def work(self, plan: Plan) -> Tensor:
        loss = self.differentiated(plan)
        if self.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)
        self.optimiser.step()
        return loss.detach()

    def computed(self, plan: Plan) -> Tensor:
        """The loss."""
        with self.mixed(), aside(self.model, whole=True):
            out = self.model(plan)
            if plan.y is None:
                raise ValueError(
                    "Expected graphs with labels 'y' for enfa.Step, got none: set compiled.y = ..., a tensor with a label for "
                    "every graph"
                )
            return self.loss(out, plan.y)

    def differentiated(self, plan: Plan) -> Tensor:
        """The loss, when parameters have their gradients."""
        if self.parallel is None:
            loss = self.computed(plan)
            loss.backward()
            return loss
        group: Any = self.parallel.process_group
        if self.parallel.broadcast_buffers:
            self._share_buffers(group)
        with aliased(self.model) as pairs:  # DistributedDataParallel keeps the nodes of its own
            loss = self.computed(plan)
            grads = torch.autograd.grad(loss, [alias for _, alias in pairs], allow_unused=True)
        for (parameter, _), grad in zip(pairs, grads):
            parameter.grad = grad
        self._average(group)
        return loss

    def eagerly(self, plan: Plan) -> Tensor:
        self.optimiser.zero_grad(set_to_none=True)
        return self.work(plan)

    @staticmethod
    def _by_dtype(tensors: list[Tensor]) -> list[list[Tensor]]:
        return [[t for t in tensors if t.dtype == dtype] for dtype in dict.fromkeys(t.dtype for t in tensors)]

    def _share_buffers(self, group: Any) -> None:
        """Those of the first process, as DistributedDataParallel does before every call."""
        for alike in self._by_dtype([b.detach() for b in self.model.buffers() if b.numel()]):
            flat = _flatten_dense_tensors(alike)
            dist.broadcast(flat, dist.get_global_rank(group, 0), group)
            for buffer, value in zip(alike, _unflatten_dense_tensors(flat, alike)):
                buffer.copy_(value)

    def _average(self, group: Any) -> None:
        learning = [p for p in self.model.parameters() if p.requires_grad]
        if not self._agreed:
            self._agree(learning, group)
        for alike in self._by_dtype([p.grad for p in learning if p.grad is not None]):
            flat = _flatten_dense_tensors(alike)
            dist.all_reduce(flat, group=group)
            flat /= dist.get_world_size(group)
            for grad, value in zip(alike, _unflatten_dense_tensors(flat, alike)):
                grad.copy_(value)

    def _agree(self, learning: list[nn.Parameter], group: Any) -> None:
        """Processes that add up different things would wait for each other. The first step, which is eager, tells."""
        there = torch.tensor([p.grad is not None for p in learning], dtype=torch.int32, device=self.device)
        dist.all_reduce(there, group=group)
        if not bool(((there == 0) | (there == dist.get_world_size(group))).all()):
            raise RuntimeError("Expected the same parameters to have gradients in all processes, got others in some of them")
        self._agreed = True


class GraphedStep(Step):
    """What :class:`Step` was called."""

    def __init__(self, *args: Any, **more: Any) -> None:
        warnings.warn("enfa.nn.GraphedStep is called enfa.Step now, and will go", DeprecationWarning, stacklevel=2)
        super().__init__(*args, **more)
