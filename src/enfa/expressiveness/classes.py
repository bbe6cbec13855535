"""A model class with several numbers of layers, as one program: what they have in common is computed once."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from torch import nn

from enfa.edits import Policy
from enfa.expressiveness.reading import Reading, read_by
from enfa.graphs import GraphSet
from enfa.graphs.numbers import whole
from enfa.plan.step import Program, Step

__all__ = ["Layered", "join_readings", "numbers_of_layers", "readings"]


@dataclass(frozen=True)
class Layered:
    """The steps of all of them; ``outputs[i]``: the steps in which the i-th one ends, each of graphs."""

    program: Program
    kept: tuple[str | None, ...]
    inputs: frozenset[str]
    layers: tuple[int, ...]
    outputs: tuple[tuple[int, ...], ...]


def numbers_of_layers(layers: int | Sequence[int]) -> tuple[int, ...]:
    """1 to ``layers``, or those that are listed."""
    if isinstance(layers, (list, tuple, range)):
        found = sorted({whole("layers", number, 1) for number in layers})
        if not found:
            raise ValueError("Expected at least one number of layers, got none")
        return tuple(found)
    return tuple(range(1, whole("layers", layers, 1) + 1))  # type: ignore[arg-type]


def depth(reading: Reading) -> int:
    """The longest chain of messages: how many layers a model has."""
    found: list[int] = []
    for step, _ in reading.steps:
        found.append(max((found[read] for read in step.reads), default=0) + (step.op == "propagate"))
    return max(found)


def readings(
    model: nn.Module | Callable[[int], nn.Module], layers: Sequence[int], graphs: GraphSet, policy: Policy
) -> list[tuple[int, Reading]]:
    """With each number of layers the traced model; of a module, itself."""
    if isinstance(model, nn.Module):
        reading = read_by(model, graphs, policy)
        return [(depth(reading), reading)]
    found = []
    for number in layers:
        made = model(number)
        if not isinstance(made, nn.Module):
            raise TypeError(f"Expected model({number}) to be a torch.nn.Module of {number} layers, got {type(made).__name__}")
        found.append((number, read_by(made, graphs, policy)))
    return found


def join_readings(found: Iterable[tuple[int, Reading]]) -> Layered:
    """Equal steps of several models are one step."""
    steps: list[tuple[Step, str | None]] = []
    place: dict[tuple[Step, str | None], int] = {}
    layers, outputs, inputs, loops = [], [], set(), True
    for number, reading in found:
        moved: list[int] = []
        for step, kept in reading.steps:
            key = replace(step, reads=tuple(moved[read] for read in step.reads)), kept
            if key not in place:
                place[key] = len(steps)
                steps.append(key)
            moved.append(place[key])
        layers.append(number)
        outputs.append(tuple(moved[n] for n, (step, _) in enumerate(reading.steps) if step.kind == "graphs"))
        inputs.add(reading.inputs)
        loops = loops and reading.loops
    if len(inputs) > 1:
        raise ValueError(
            f"Expected a model that reads the same inputs with any number of layers, got {' and '.join(map(_named, inputs))}"
        )
    program = Program(tuple(step for step, _ in steps), loops=loops, counted=False)
    return Layered(program, tuple(kept for _, kept in steps), inputs.pop(), tuple(layers), tuple(outputs))


def _named(inputs: frozenset[str]) -> str:
    return ", ".join(sorted(inputs)) or "none"
