"""One captured call of a model: a graph forwards, one backwards, and the memory that they read and write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn
from torch._utils import _unflatten_dense_tensors
from torch.utils._pytree import LeafSpec, tree_flatten, tree_unflatten

from enfa.batch.static.arriving import Staged
from enfa.nn.cuda.aliases import aliased
from enfa.nn.cuda.record import Recorder
from enfa.nn.cuda.restored import Uncapturable, as_it_was
from enfa.nn.cuda.seeds import Seeds, seeded
from enfa.nn.cuda.side_stream import aside
from enfa.nn.cuda.watch import leaves_of
from enfa.plan.table import Plan

__all__ = ["Run"]


class _Labels:
    """In place of labels, which may have been replaced: a model that reads them is not captured."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise Uncapturable("it reads labels")

    __getattr__ = __torch_function__ = __getitem__ = __setitem__ = __len__ = __iter__ = __contains__ = _refuse
    __bool__ = __float__ = __int__ = __index__ = __neg__ = __invert__ = __abs__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = _refuse
    __floordiv__ = __mod__ = __and__ = __or__ = __xor__ = __matmul__ = __rmatmul__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse  # type: ignore[assignment]
    __class__ = property(_refuse)  # type: ignore[assignment]  # isinstance
    __hash__ = None  # type: ignore[assignment]


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
                plan = self.view(self.block)
                outs, self.spec = tree_flatten(self.call(plan.changed(y=None if plan.y is None else _Labels())))
            if any(alias.data_ptr() != p.data_ptr() for p, alias in self.pairs):
                raise Uncapturable("its forward puts other data into a parameter")
        for out in outs:
            if not isinstance(out, Tensor) or out.device != self.block.device:
                raise Uncapturable(f"it returns {type(out).__name__}, where a captured model returns tensors on the device")
        self.outs = outs
        return [out.detach() for out in outs]

    def backward(self, given: tuple[bool, ...] | None = None) -> list[Tensor]:
        """The gradients of all parameters with one dtype behind each other, in the order of ``used``.

        ``given``: which of the outputs that learn have gradients; the others are as if they had not been computed."""
        learnt = [out for out in self.outs if out.requires_grad]
        given = given or (True,) * len(learnt)
        learnt, grads = [[x for x, there in zip(of, given) if there] for of in (learnt, self.grads)]
        with torch.autocast(self.block.device.type, enabled=False):  # as where losses are differentiated
            aliases = [alias for _, alias in self.pairs]
            found = torch.autograd.grad(learnt, aliases, grads, retain_graph=True, allow_unused=True)
        pairs = [(p, g) for (p, _), g in zip(self.pairs, found) if g is not None]
        pairs.sort(key=lambda pair: str(pair[0].dtype))
        self.used = [p for p, _ in pairs]
        dtypes = dict.fromkeys(p.dtype for p in self.used)
        return [torch.cat([g.reshape(-1) for p, g in pairs if p.dtype == dtype]) for dtype in dtypes]

    def check(self) -> None:
        own = {id(alias) for _, alias in self.pairs}
        if any(id(leaf) not in own for leaf in leaves_of(self.outs)):
            raise Uncapturable("it learns something that is none of its parameters")


@dataclass
class _Back:
    """A graph backwards, where it writes gradients, and of which of the parameters ``used``."""

    graph: Any
    flat: list[Tensor]
    like: list[list[nn.Parameter]]
    numbers: list[int]


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
        with as_it_was(model), recorder.rehearsal():
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
            if len(self.grads) > 3:
                raise Uncapturable("it returns more than three outputs that learn, of which a loss may read any")
            self._back: dict[tuple[bool, ...], _Back] = {}
            for given in sorted(product((True, False), repeat=len(self.grads)), reverse=True)[:-1]:
                graph, flat = recorder.record(partial(work.backward, given), pool)
                dtypes = dict.fromkeys(p.dtype for p in work.used)
                like = [[p for p in work.used if p.dtype == dtype] for dtype in dtypes]
                self.used = self.used or work.used  # of all outputs, which come first
                numbers = {id(p): n for n, p in enumerate(self.used)}
                self._back[given] = _Back(graph, flat, like, [numbers[id(p)] for p in work.used])
        self.read = [*self.used, *(p for p in model.parameters() if not p.requires_grad)]
        work.outs, work.pairs = [], []  # their history: its memory is that of the graphs

    def forward(self, staged: Staged) -> list[Tensor]:
        self.block.copy_(staged.here())
        self.seeds.draw()
        self.graph.replay()
        return [out.clone() for out in self.outs]

    def backward(self, grads: Sequence[Tensor | None]) -> list[Tensor | None]:
        """Of the parameters ``used``; parts of one tensor each dtype, which nothing will write into any more."""
        for place, grad in zip(self.grads, grads):
            if grad is not None:
                place.copy_(grad)
        found: list[Tensor | None] = [None] * len(self.used)
        back = self._back.get(tuple(grad is not None for grad in grads))
        if back is not None:
            back.graph.replay()
            parts = zip(back.flat, back.like)
            new = (grad for flat, like in parts for grad in _unflatten_dense_tensors(flat.clone(), like))
            for number, grad in zip(back.numbers, new):
                found[number] = grad
        return found

    def result(self, outs: Sequence[Tensor]) -> Any:
        return outs[0] if self.single else tree_unflatten(list(outs), self.spec)
