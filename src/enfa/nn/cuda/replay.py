"""A model called with a batch on a GPU replays captured graphs; autograd, losses and optimisers see an ordinary call.

The first batch of a bucket runs eagerly, the second is captured, all others are replayed. The activations of a call lie in the
graphs' own memory until its backward pass, so every call that waits for one has a place of its own (:class:`_Place`).
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from operator import attrgetter
from threading import RLock, local
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.modules.batchnorm import _BatchNorm

from enfa.batch.static.arriving import OnDevice
from enfa.nn.cuda.boxes import Unwatched
from enfa.nn.cuda.record import Recorder, recorder
from enfa.nn.cuda.run import Run
from enfa.nn.cuda.watch import Watch, ambient, hooked_part, watched_elsewhere
from enfa.nn.ops.norm import process_group
from enfa.nn.ops.saved import saving_is_watched

__all__ = ["Replays"]

PLACES = 4  # calls that may wait for their backward passes
STATES = 8  # of a module that graphs are kept for: training and evaluation, say


class _Within(local):
    """Whether this thread is running a model eagerly that parts of it may be captured of."""

    model = False


_within = _Within()
_version = attrgetter("_version")


class _Place:
    """Memory for one call at a time, from its forward to its backward pass; graphs of all buckets share it."""

    def __init__(self, pool: Any) -> None:
        self.pool, self.calls = pool, 0
        self.stream: tuple[Any, int] | None = None  # the last one used here, and its number
        self._ticket: Callable[[], _Ticket | None] = lambda: None

    def free(self) -> bool:
        ticket = self._ticket()
        return ticket is None or ticket.used

    def take(self) -> _Ticket:
        self.calls += 1
        ticket = _Ticket(self, self.calls)
        self._ticket = weakref.ref(ticket)
        return ticket

    def follow(self, records: Recorder) -> None:
        """What comes next on the current stream comes after all that was done here."""
        number = records.stream_number()
        if self.stream is not None and number == self.stream[1]:
            return
        stream = records.stream()
        if self.stream is not None:
            stream.wait_stream(self.stream[0])
        self.stream = stream, number


class _Ticket:
    """A call. Autograd keeps it as long as its backward pass may come."""

    def __init__(self, place: _Place, number: int) -> None:
        self.place, self.number, self.used = place, number, False

    def check(self) -> None:
        if self.place.calls != self.number:
            raise RuntimeError(
                "Expected every backward pass of a captured model before a later call that took its memory, got it after that: "
                "do it earlier, or call the model under enfa.eagerly()"
            )


class _State:
    """A module as it was, and what was captured of it: by circumstances of the call, by bucket, by place."""

    def __init__(self, model: nn.Module) -> None:
        self.watch = Watch(model)
        self.learns = any(t.requires_grad for t in self.watch.tensors)
        self.leaves = all(t.is_leaf for t in self.watch.tensors)
        self.runs: dict[Any, weakref.WeakKeyDictionary[Any, dict[Any, Run]]] = {}


class _Replay(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, run: Run, ticket: _Ticket, staged: Any, *params: Tensor) -> tuple[Tensor, ...]:
        outs = run.forward(staged)
        ctx.set_materialize_grads(False)  # an output that no loss reads: no gradients, rather than zeros
        ctx.run, ctx.ticket, ctx.versions = run, ticket, list(map(_version, run.read))
        ctx.save_for_backward(params[0])  # all of them would take longer than all else here
        if not all(run.learns):
            ctx.mark_non_differentiable(*(out for out, learns in zip(outs, run.learns) if not learns))
        return tuple(outs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        ctx.saved_tensors  # noqa: B018  (refuses a second pass that was not announced)
        run = ctx.run
        if list(map(_version, run.read)) != ctx.versions:
            raise RuntimeError(
                "Expected weights as they were in the forward pass for its backward pass, got some that were modified by an "
                "inplace operation since"
            )
        ctx.ticket.check()
        found = run.backward([grad for grad, learns in zip(grads, run.learns) if learns])
        ctx.ticket.used = True
        return (None, None, None, *found)


# without a look at transforms of functions, which are none here (:func:`watched_elsewhere`)
_apply: Any = super(torch.autograd.Function, _Replay).apply


class Replays(Unwatched):
    """What was captured of one module. A copy of the module starts anew."""

    def __init__(self) -> None:
        self.states: list[_State] = []  # the last used first
        self.places: list[_Place] = []
        self.glance: _Place | None = None  # of calls that no backward pass follows
        self.captured = self.replayed = self.eager = 0
        self._told: set[str] = set()
        self._off = False
        self._restless = 0  # eager calls in a row that changed the module
        self._new = 0  # calls in a row that found it other than ever before
        self._lock = RLock()

    def __deepcopy__(self, memo: Any) -> Replays:
        return Replays()

    def __reduce__(self) -> Any:
        return Replays, ()

    def __call__(self, model: nn.Module, call: Callable[[Any], Any], batch: Any) -> Any:
        """``call(batch)``, replayed where that is the same."""
        staged = batch.staged
        found = None
        if not self._off and staged is not None and staged.key is not None:
            device = staged.block.device
            records = recorder(device)
            if records is not None and not records.capturing() and not watched_elsewhere():
                with self._lock:
                    found = self._found(model, call, batch, records)
        elif staged is None and isinstance(batch, OnDevice):
            self._tell(model, "arrays of its batch were replaced")
        if found is not None:
            self.replayed += 1
            return found[0]
        self.eager += 1
        return self._eagerly(model, call, batch)

    def _eagerly(self, model: nn.Module, call: Callable[[Any], Any], batch: Any) -> Any:
        before, _within.model = _within.model, True
        watch = self.states[0].watch if self.states else None
        try:
            result = call(batch)
        finally:
            _within.model = before
        # what is made in the first call stays as it is in the next
        self._restless = 0 if watch is None or watch.same() else self._restless + 1
        if watch is not None and self._restless > 2:
            self._tell(model, f"its forward changes {watch.changed()}, and a replayed graph runs no Python")
        return result

    def _found(self, model: nn.Module, call: Callable[[Any], Any], batch: Any, records: Recorder) -> tuple[Any] | None:
        state = self._state(model)
        if state is None:
            return None
        why = self._why_not(state, batch)
        if why:
            self._tell(model, why)
            return None
        surroundings = ambient(records.device)
        learns = surroundings[0] and not surroundings[1] and state.learns
        place = self._place(records, learns)
        if place is None:
            self._tell(model, f"{PLACES} calls of it wait for their backward passes already")
            return None
        runs = state.runs.get(surroundings)
        if runs is None:
            runs = state.runs[surroundings] = weakref.WeakKeyDictionary()
        staged = batch.staged
        placed = runs.get(staged.key)
        if placed is None:
            runs[staged.key] = {}
            return None
        place.follow(records)
        run = placed.get(place)
        if run is None:
            try:
                with torch.inference_mode(False):
                    run = placed[place] = Run(model, call, staged, learns, records, place.pool)
            except Exception as error:  # run eagerly, it says what is wrong
                self._off = True
                self._tell(model, str(error))
                return None
            self.captured += 1
        if not run.used:
            return (run.result(run.forward(staged)),)
        return (run.result(_apply(run, place.take(), staged, *run.used)),)

    def _state(self, model: nn.Module) -> _State | None:
        for number, state in enumerate(self.states):
            if state.watch.model is model and state.watch.same():
                if number:
                    self.states.insert(0, self.states.pop(number))
                self._new = 0
                return state
        if any(map(nn.parameter.is_lazy, model.parameters())):
            return None
        self._new += 1
        if self._new > 2 * STATES:
            self._tell(model, f"{self.states[0].watch.changed()} changes from call to call")
        self.states = [_State(model), *self.states[: STATES - 1]]
        return self.states[0]

    def _why_not(self, state: _State, batch: Any) -> str:
        if state.watch.hooked():
            return f"{hooked_part(state.watch.model)} has hooks, which a replayed graph would not call"
        if not batch.untouched():
            return "features of its batch need gradients, or attributes of it were added or replaced"
        if saving_is_watched():
            return "what it saves for its backward pass is asked for (by checkpointing, say)"
        if process_group() is not None and any(m.training and isinstance(m, _BatchNorm) for m in state.watch.modules):
            return "its BatchNorm takes sums over processes, which would all have to capture it at the same time"
        if state.watch.boxes.countless:
            return "it holds too many objects of its own, any of which may change"
        if not state.leaves:
            return "some of its weights are computed from others"
        return ""

    def _place(self, records: Recorder, learns: bool) -> _Place | None:
        if not learns:
            self.glance = self.glance or _Place(records.pool())
            return self.glance
        for place in self.places:
            if place.free():
                return place
        if len(self.places) == PLACES:
            return None
        self.places.append(_Place(records.pool()))
        return self.places[-1]

    def _tell(self, model: nn.Module, why: str) -> None:
        """Once each; and not of a part of a model that has said so."""
        if why not in self._told and not _within.model:
            self._told.add(why)
            warnings.warn(f"{type(model).__name__} runs eagerly, not as a captured CUDA graph: {why}", stacklevel=6)
