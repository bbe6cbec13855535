"""What a model gives on a plan, by name, and how far apart two such results are."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from enfa.draws import drawn
from enfa.nn.bag import Bag

__all__ = ["distance", "results_in_place", "results_of", "scales_of"]


def _outputs(out: Any, name: str = "output") -> dict[str, Tensor]:
    """What a model returns: a tensor, or several in tuples, lists and dictionaries."""
    if isinstance(out, Tensor):
        return {name: out}
    parts = out.items() if isinstance(out, dict) else enumerate(out) if isinstance(out, (list, tuple)) else ()
    return {full: part for key, value in parts for full, part in _outputs(value, f"{name} {key}").items()}


def _backward(out: dict[str, Tensor], term: Callable[[Tensor], Tensor]) -> bool:
    """From a term of every output through which gradients flow; whether there are any."""
    recorded = [value for value in out.values() if value.requires_grad]
    if recorded:
        torch.autograd.backward([term(value) for value in recorded])
    return bool(recorded)


def _weighted(out: Tensor) -> Tensor:
    weight = torch.linspace(-1, 1, out.numel(), dtype=out.dtype, device=out.device).reshape(out.shape)
    return (out.square() + out * weight).sum()


def results_of(model: nn.Module, plan: Bag, train: bool, steps: int) -> dict[str, Tensor]:
    """Everything that must not depend on the plan. The model is not changed."""
    return results_in_place(copy.deepcopy(model), plan, train, steps)


def results_in_place(model: nn.Module, plan: Bag, train: bool, steps: int) -> dict[str, Tensor]:
    """The same, but training changes the model."""
    model.train(train).zero_grad()
    with drawn(0):  # ordinary dropout after pooling draws from the global generator
        out = _outputs(model(plan))
        learns = _backward(out, _weighted)
        found = {name: value.detach() for name, value in out.items()}
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                found[f"gradient of {name}"] = parameter.grad.detach().clone()
        for name, buffer in model.named_buffers():
            found[f"buffer {name}"] = buffer.detach().clone()
        if steps and train and learns:
            plan = plan.map(lambda t: t.detach())  # gradients of features flow once
            # Adam divides a gradient by its own size, which makes steps out of the rounding errors of a gradient that
            # is zero. Clipped gradients and an eps far above rounding keep those still.
            optimiser = torch.optim.Adam(model.parameters(), lr=0.01, eps=1e-4)
            for _ in range(steps):
                optimiser.zero_grad()
                _backward(_outputs(model(plan)), lambda value: value.square().mean())
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimiser.step()
            for name, parameter in model.named_parameters():
                found[f"weight {name} after {steps} steps"] = parameter.detach()
            found |= {f"{name} after {steps} steps": value.detach() for name, value in _outputs(model(plan)).items()}
    return found


def scales_of(reference: dict[str, Tensor]) -> dict[str, float]:
    """What each quantity is measured against: its largest entry, but at least a hundredth of its group's.

    A gradient that is zero but for rounding (a bias in front of BatchNorm) has no scale of its own, and neither has a
    running mean of zero: gradients are one group, weights another, the buffers of one module a third.
    """

    def group(name: str) -> str:
        return name.rpartition(".")[0] if name.startswith("buffer") else name.split(" ")[0]

    own = {name: _largest(value.double()) for name, value in reference.items()}
    largest: dict[str, float] = {}
    for name, value in own.items():
        largest[group(name)] = max(largest.get(group(name), 0.0), value)
    return {name: max(value, 1e-2 * largest[group(name)]) or 1.0 for name, value in own.items()}


def _largest(value: Tensor) -> float:
    """Without the infinities that masks are made of."""
    size = value.abs()[~value.isinf()]
    return float(size.max()) if size.numel() else 0.0


def distance(value: Tensor | None, reference: Tensor) -> float:
    if value is None or value.shape != reference.shape:
        return float("inf")
    off = (value.double() - reference.double())[value != reference].abs()  # equal infinities are no difference
    return float(off.nan_to_num(float("inf")).max()) if off.numel() else 0.0
