"""A captured model is replayed as long as it is what it was: what changes is captured anew, or runs eagerly."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from loops import Net, assert_close, eager_gradients, gradients, model_of, replays_of, trained, warmed
from torch import Tensor, nn

CHANGES: dict[str, Callable[[Any], Any]] = {
    "storage": lambda model: setattr(model.head[3].weight, "data", model.head[3].weight.data * 2),
    "a parameter": lambda model: setattr(model.head[3], "weight", nn.Parameter(model.head[3].weight.data * 2)),
    "a module": lambda model: setattr(model, "head", nn.Sequential(nn.Linear(16, 2)).to(model.head[3].weight)),
    "values": lambda model: model.load_state_dict({k: v * 2 for k, v in model.state_dict().items()}),
    "dropout": lambda model: setattr(model.layers[1].dropout, "p", 0.7),
    "frozen": lambda model: model.layers[0].requires_grad_(False),
    "evaluation": lambda model: model.eval(),
    "a part in evaluation": lambda model: model.layers[1].eval(),
    "precision": lambda model: model.float().double(),
    "copied": lambda model: copy.deepcopy(model),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_the_model_is_noticed(change: str, compiled: Any, device: str, on: Callable[..., nn.Module]) -> None:
    model = on(model_of())
    batches = warmed(compiled, device, model)
    other = CHANGES[change](model)
    model = other if change == "copied" else model
    before = replays_of(model).replayed
    for batch in batches:
        expected = eager_gradients(model, batch)
        assert_close(gradients(model, batch), expected)
    assert replays_of(model).replayed - before >= 2 and replays_of(model).captured == (
        1 if change in ("values", "copied") else 2
    )


SCALE = 1.0


class _Settings:
    scale = 1.0


class _Read(Net):
    """Python reads a number wherever people keep one."""

    shared = 1.0

    def __init__(self, where: Callable[[Any], float]) -> None:
        super().__init__()
        self.where, self.settings, self.listed, self.named = where, _Settings(), [1.0, 1.0], {"scale": 1.0}
        self.nested, self.deep = {"loss": {"scale": 1.0}}, _Settings()
        self.deep.inner, self.array = _Settings(), np.ones(2)

    def forward(self, bag: Any) -> Any:
        return super().forward(bag) * self.where(self)


def _set(target: Any, name: Any, value: float) -> None:
    if isinstance(target, (list, dict)):
        target[name] = value
    else:
        setattr(target, name, value)


def _variable() -> tuple[Any, Any]:
    value = 1.0

    def write(new: float) -> None:
        nonlocal value
        value = new

    return lambda model: value, write


_around = _variable()


# where the number is, and where it is written
NUMBERS: dict[str, tuple[Callable[[Any], float], Callable[[Any, float], Any]]] = {
    "an attribute": (lambda m: m.scale, lambda m, v: setattr(m, "scale", v)),
    "an object": (lambda m: m.settings.scale, lambda m, v: setattr(m.settings, "scale", v)),
    "a list": (lambda m: m.listed[0], lambda m, v: _set(m.listed, 0, v)),
    "a dictionary": (lambda m: m.named["scale"], lambda m, v: _set(m.named, "scale", v)),
    "a dictionary in another": (lambda m: m.nested["loss"]["scale"], lambda m, v: _set(m.nested["loss"], "scale", v)),
    "an object in another": (lambda m: m.deep.inner.scale, lambda m, v: setattr(m.deep.inner, "scale", v)),
    "the class": (lambda m: m.shared, lambda m, v: setattr(_Read, "shared", v)),
    "the class of an object": (lambda m: m.settings.scale, lambda m, v: setattr(_Settings, "scale", v)),
    "a global": (lambda m: SCALE, lambda m, v: globals().update(SCALE=v)),
    "a variable around a function": (_around[0], lambda m, v: _around[1](v)),
    "an array": (lambda m: float(m.array[0]), lambda m, v: m.array.fill(v)),
    "an argument of a partial": (lambda m: m.part(), lambda m, v: setattr(m, "part", partial(float, v))),
}


@pytest.mark.parametrize("steady", [True, False])
@pytest.mark.parametrize("place", NUMBERS)
def test_a_number_that_python_reads(place: str, steady: bool, same_loop: Callable[..., Any]) -> None:
    """Annealed in every step, or changed once: then the model is captured anew, and replayed."""
    read, write = NUMBERS[place]

    def anneal(model: Any, step: int) -> None:
        if step in (0, 3) or not steady:
            write(model, 0.9**step)

    try:
        outcome = same_loop(lambda: _Read(read), partial(trained, before=anneal))
    finally:
        _Read.shared = _Settings.scale = globals()["SCALE"] = 1.0
        _around[1](1.0)
    assert outcome.replays.replayed == (4 if steady else 0)


COUNT = 0


class _Writing(Net):
    """Its forward leaves something behind."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what, self.steps, self.extra, self.seen, self.flip = what, 0, [], {"calls": 0}, False
        self.calls, self.mean = torch.zeros(()), nn.Parameter(torch.zeros(4).double(), requires_grad=False)
        self.wide = nn.Linear(4, 3000).double()  # whose memory is not used again at once
        self.register_buffer("average", torch.zeros(4).double())
        self.inner, self.chosen, self.nested = _Settings(), set(), {"inner": {"calls": 0}}

    def forward(self, bag: Any) -> Any:
        h, out, scale = self.hidden(bag), self.head, 1.0
        if self.what == "a list":
            self.extra.append(h.square().mean())
        elif self.what == "a dictionary":
            self.seen["calls"] += 1
        elif self.what == "a dictionary in another":
            self.nested["inner"]["calls"] += 1
        elif self.what == "a set":
            self.chosen.add(len(self.chosen))
        elif self.what == "an object":
            self.inner.scale = self.inner.scale * 0.9
        elif self.what == "a number":
            self.steps += 1
            scale = min(1.0, self.steps / 4)
        elif self.what == "a flag":
            self.flip = not self.flip
            scale = 2.0 if self.flip else 1.0
        elif self.what == "data":
            self.head.weight.data = torch.renorm(self.head.weight.data, 2, 0, 0.3)
        elif self.what == "much data":
            out = self.wide
            out.weight.data = torch.renorm(out.weight.data, 2, 0, 0.3)
        elif self.what == "a tensor":
            self.calls += 1
        elif self.what == "a frozen parameter":
            with torch.no_grad():
                self.mean.lerp_(h.mean(0), 0.1)
            h = h - self.mean
        elif self.what == "a buffer":
            self.average.lerp_(h.mean(0).detach(), 0.1)
            h = h - self.average
        elif self.what == "another buffer":
            self.average = 0.9 * self.average + 0.1 * h.mean(0).detach()
            h = h - self.average
        elif self.what == "a global":
            global COUNT
            COUNT += 1
            scale = min(1.0, COUNT / 4)
        elif self.what == "the class":
            _Writing.total += 1
            scale = min(1.0, _Writing.total / 4)
        return out(h) * scale

    total = 0


IN_PLACE = ("a tensor", "a frozen parameter", "a buffer")  # which a graph does, too


@pytest.mark.parametrize(
    "what",
    [
        "a list", "a dictionary", "a dictionary in another", "a set", "an object", "a number", "a flag", "data", "much data",
        "another buffer", "the class", "a global", *IN_PLACE,
    ],
)  # fmt: skip
def test_what_a_forward_leaves_behind(what: str, same_loop: Callable[..., Any]) -> None:
    """Is what it leaves without a graph, and the loss may read it."""

    def loop(model: Any, every: list[Any]) -> Any:
        _Writing.total = globals()["COUNT"] = 0
        model.calls = model.calls.to(every[0].staged.block.device)
        optimiser, losses = torch.optim.SGD(model.parameters(), lr=0.1), []
        for _ in range(2):
            model.steps = 0
            for batch in every:
                optimiser.zero_grad()
                model.extra.clear()
                loss = model(batch).square().mean() + sum(model.extra)
                loss.backward()
                optimiser.step()
                losses.append(loss.detach())
        left = [model.steps, model.seen["calls"], model.nested["inner"]["calls"], len(model.chosen), model.inner.scale]
        return losses, left, model.calls, model.flip, _Writing.total, COUNT

    outcome = same_loop(lambda: _Writing(what), loop)
    assert outcome.replays.replayed == (11 if what in IN_PLACE else 0)
    assert bool(outcome.told) == (what not in IN_PLACE)


def test_data_in_another_order(same_loop: Callable[..., Any]) -> None:
    """The same memory, read otherwise."""

    class Square(Net):
        def __init__(self) -> None:
            super().__init__()
            self.middle = nn.Linear(4, 4).double()

        def hidden(self, bag: Any) -> Tensor:
            return self.middle(super().hidden(bag))

    def turn(model: Any, step: int) -> None:
        if step == 4:
            model.middle.weight.data = model.middle.weight.data.t()

    outcome = same_loop(Square, partial(trained, before=turn), 8)
    assert outcome.replays.captured == 2 and outcome.replays.replayed == 6


def test_parameters_that_are_not_there_yet(same_loop: Callable[..., Any]) -> None:
    class Lazy(Net):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.LazyLinear(2, dtype=torch.float64)

    outcome = same_loop(Lazy, lambda model, every: [model(batch).detach() for batch in every])
    assert outcome.replays.replayed == 4 and not outcome.told


class _Beside(Net):
    """A number in a tensor that stays on the CPU. A GPU has it as it was when the graph was captured."""

    def __init__(self, counts: bool) -> None:
        super().__init__()
        self.counts, self.beside = counts, torch.ones((), dtype=torch.float64)

    def forward(self, bag: Any) -> Any:
        if self.counts:
            self.beside += 1
        return super().forward(bag) * self.beside


@pytest.mark.parametrize("counts", [True, False])
def test_a_tensor_that_stays_on_the_cpu(counts: bool, device: str, same_loop: Callable[..., Any]) -> None:
    def anneal(model: Any, step: int) -> None:
        if step == 3 and not counts:
            model.beside.mul_(0.5)

    outcome = same_loop(lambda: _Beside(counts), lambda m, every: (trained(m, every, before=anneal), m.beside))
    assert outcome.replays.replayed == (5 if device == "cpu" else 0 if counts else 4)


def test_a_part_that_is_compiled(same_loop: Callable[..., Any]) -> None:
    """It is a module that keeps no ``training`` of its own."""

    class Compiled(Net):
        def __init__(self) -> None:
            super().__init__()
            self.head = torch.compile(self.head, backend="eager")

    outcome = same_loop(Compiled, trained)
    assert outcome.replays.replayed in (0, 5) and bool(outcome.told) == (outcome.replays.replayed == 0)
