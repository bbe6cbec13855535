"""Milliseconds and bytes of one training step of a peer, or of ours, on a batch that is on the device."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn

import enfa
from enfa.nn import Step
from gpu_parts.measure import median_ms
from peer_parts.peer import Peer

__all__ = ["MEASURES", "Timed"]

# what takes long to compile comes last
MEASURES = (
    ("theirs", "ours, captured", "ours, captured, bfloat16", "ours, eager", "theirs, CUDA graph"),
    ("theirs, torch.compile", "theirs, torch.compile, CUDA graph"),
)


def _timed(make: Callable[[], Callable[[], object]]) -> dict[str, float]:
    """Of the step that ``make`` returns, which may capture it: what that takes counts, too."""
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    step = make()
    for _ in range(3):  # a graph's memory is taken when it is captured
        step()
    ms, spread = median_ms(step, 1.0)
    return {"ms": ms, "spread_ms": spread, "peak_bytes": torch.cuda.max_memory_allocated()}


def _adam(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=1e-3, fused=True, capturable=True)


def _rows(plan: Any) -> int:
    """Rows that the convs of all layers compute."""
    return sum(table.links.num_rows for table in plan.tables if table.links is not None)


class Timed:
    """A peer and its batch, made once."""

    def __init__(self, peer: Peer, count: int) -> None:
        self.peer, self.graphs = peer, peer.graphs[:count]
        self.y = peer.y[:count]
        self.made: Any = None
        self.plan: Any = None

    def measure(self, what: str) -> dict[str, Any]:
        """Milliseconds and bytes, or a sentence that says what went wrong."""
        try:
            found = self._theirs(what) if what.startswith("theirs") else self._ours(what)
        except Exception as error:
            found = {"failed": f"{type(error).__name__}: {str(error).splitlines()[0][:150] if str(error) else ''}"}
        torch.compiler.reset()
        gc.collect()
        torch.cuda.empty_cache()
        return found

    def _theirs(self, what: str) -> dict[str, Any]:
        if self.made is None:
            self.made = self.peer.batch(self.graphs)
        batch, y = copy.copy(self.made).to("cuda"), self.y.cuda()
        with nullcontext() if what == "theirs" else self.peer.static(batch):
            return self._step(what, batch, y)

    def _step(self, what: str, batch: Any, y: Any) -> dict[str, Any]:
        model = copy.deepcopy(self.peer.theirs).cuda().train()
        optimiser = _adam(model)
        call = torch.compile(model, dynamic=False) if "compile" in what else model

        def forward() -> None:
            self.peer.loss(call(copy.copy(batch)), y).backward()
            optimiser.step()

        def step() -> None:
            optimiser.zero_grad(set_to_none=True)
            forward()

        return _timed(lambda: self._captured(step, forward, optimiser) if "graph" in what else step)

    @staticmethod
    def _captured(
        step: Callable[[], None], forward: Callable[[], None], optimiser: torch.optim.Optimizer
    ) -> Callable[[], object]:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        optimiser.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            forward()
        return graph.replay

    def _ours(self, what: str) -> dict[str, Any]:
        model = copy.deepcopy(self.peer.ours)
        if self.plan is None:
            self.plan = enfa.compile(self.graphs, self.peer.policy, model, progress=False)[list(range(len(self.graphs)))]
            self.plan.y = self.y
        model = model.cuda().train()
        mixed = torch.bfloat16 if what.endswith("bfloat16") else None
        step: Any = Step(model, _adam(model), self.peer.loss, capture="captured" in what, autocast=mixed)
        staged = step.stage(self.plan)
        found: dict[str, Any] = _timed(lambda: lambda: step(staged))
        if what == "ours, captured":  # and how much less there was to do
            pairs = self.plan.num_pairs
            found["rows"] = {"pairs": pairs, "distinct": _rows(self.plan)}
        return found
