"""One captured call of a model: a graph forwards, one backwards, and the memory that they read and write."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch._utils import _unflatten_dense_tensors
from torch.utils._pytree import LeafSpec, tree_flatten, tree_unflatten

from enfa.batch.static.arriving import Staged
from enfa.nn.cuda.aliases import aliased
from enfa.nn.cuda.record import Recorder
from enfa.nn.cuda.seeds import Seeds, seeded
from enfa.nn.cuda.side_stream import aside
from enfa.nn.cuda.watch import Watch, leaves_of
from enfa.plan.table import Plan

__all__ = ["Run", "Uncapturable"]


class Uncapturable(Exception):
    """Why a model has to run eagerly."""


@dataclass
class _Work:
    """What is captured. ``call``: the model, as it runs eagerly; ``learns``: whether a backward pass may follow."""

    model: nn.Module
    call: Callable[[Plan], Any]
    view: Callable[[Tensor], Plan]
    block: Tensor
    seeds: Seeds
    learns: bool
    mixed: torch.dtype | None  # of autocast
    outs: list[Tensor] = field(default_factory=list)  # of the model, with their history
    spec: Any = None  # what they are part of
    pairs: list[tuple[nn.Parameter, nn.Parameter]] = field(default_factory=list)  # what learns: parameters, and their aliases
    grads: list[Tensor] = field(default_factory=list)  # of those outputs that have a history
    used: list[nn.Parameter] = field(default_factory=list)  # that the outputs depend on

    def forward(self) -> list[Tensor]:
        kind = self.block.device.type
        # without its memory of cast weights, which would outlive a graph's; labels are the loss's affair
        mixed = nullcontext() if self.mixed is None else torch.autocast(kind, self.mixed, cache_enabled=False)
        with torch.inference_mode(False), torch.set_grad_enabled(self.learns), mixed, aliased(self.model) as self.pairs:
            beside = aside(self.model) if self.learns else nullcontext()
            with beside, seeded(self.seeds):
                outs, self.spec = tree_flatten(self.call(self.view(self.block).changed(y=None)))
        for out in outs:
            if not isinstance(out, Tensor) or out.device != self.block.device:
                raise Uncapturable(f"it returns {type(out).__name__}, where a captured model returns tensors on the device")
        self.outs = outs
        return [out.detach() for out in outs]

    def backward(self) -> list[Tensor]:
        """The gradients of all parameters with one dtype behind each other, in the order of ``used``."""
        learnt = [out for out in self.outs if out.requires_grad]
        with torch.autocast(self.block.device.type, enabled=False):  # as where losses are differentiated
            aliases = [alias for _, alias in self.pairs]
            found = torch.autograd.grad(learnt, aliases, self.grads, retain_graph=True, allow_unused=True)
        given = [(p, g) for (p, _), g in zip(self.pairs, found) if g is not None]
        given.sort(key=lambda pair: str(pair[0].dtype))
        self.used = [p for p, _ in given]
        dtypes = dict.fromkeys(p.dtype for p in self.used)
        return [torch.cat([g.reshape(-1) for p, g in given if p.dtype == dtype]) for dtype in dtypes]

    def check(self) -> None:
        own = {id(alias) for _, alias in self.pairs}
        if any(id(leaf) not in own for leaf in leaves_of(self.outs)):
            raise Uncapturable("it learns something that is none of its parameters")


class Run:
    """``learns``: whether a backward pass may follow.

    The graph backwards leaves what it reads as it was, so it may be replayed again after one replay forwards.
    """

    def __init__(
        self, model: nn.Module, call: Callable[[Plan], Any], staged: Staged, learns: bool, recorder: Recorder, pool: Any
    ) -> None:
        self.block = staged.here().clone()
        kind, self.seeds = self.block.device.type, Seeds(self.block.device)
        mixed = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
        work = _Work(model, call, staged.view, self.block, self.seeds, learns, mixed)
        with _as_it_was(model), recorder.rehearsal():
            work.forward()
            work.check()
            work.grads = [torch.zeros_like(out) for out in work.outs if out.requires_grad]
            if work.grads:
                work.backward()
        work.outs = []
        self.graph, self.outs = recorder.record(work.forward, pool)
        self.spec, self.grads, self.learns = work.spec, work.grads, [out.requires_grad for out in work.outs]
        self.single = isinstance(self.spec, LeafSpec)
        self.used: list[nn.Parameter] = []
        if self.grads:
            self.graph_back, self._flat = recorder.record(work.backward, pool)
            self.used = work.used
            dtypes = dict.fromkeys(p.dtype for p in self.used)
            self._parts = [[p for p in self.used if p.dtype == dtype] for dtype in dtypes]
        work.outs, work.pairs = [], []  # their history: its memory is that of the graphs

    def forward(self, staged: Staged) -> list[Tensor]:
        self.block.copy_(staged.here())
        self.seeds.draw()
        self.graph.replay()
        return [out.clone() for out in self.outs]

    def backward(self, grads: Sequence[Tensor]) -> list[Tensor]:
        """Of the parameters ``used``; parts of one tensor each dtype, which nothing will write into any more."""
        for place, grad in zip(self.grads, grads):
            place.copy_(grad)
        self.graph_back.replay()
        parts = zip(self._flat, self._parts)
        return [grad for flat, like in parts for grad in _unflatten_dense_tensors(flat.clone(), like)]

    def result(self, outs: Sequence[Tensor]) -> Any:
        return outs[0] if self.single else tree_unflatten(list(outs), self.spec)


@contextmanager
def _as_it_was(model: nn.Module) -> Iterator[None]:
    """Run a model without a trace: buffers are as they were. Refuses one that leaves another, which no replay would."""
    watch, buffers = Watch(model), list(model.buffers())
    kept, versions = [b.clone() for b in buffers], [b._version for b in buffers]
    drawn, numbers = torch.get_rng_state(), random.getstate()
    training = any(module.training for module in watch.modules)
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value, version in zip(buffers, kept, versions):
                # one that nothing may have written into can be part of a graph that waits for its backward pass
                if training or buffer._version != version:
                    buffer.copy_(value)
        unlike = not torch.equal(torch.get_rng_state(), drawn) or random.getstate() != numbers
        torch.set_rng_state(drawn)
        random.setstate(numbers)
    if not watch.same():
        raise Uncapturable(f"its forward changes {watch.changed()}, and a replayed graph runs no Python")
    if unlike:
        raise Uncapturable("it draws random numbers on the CPU, and a replayed graph runs no Python")
