"""Comparing plans: outputs, gradients, BatchNorm buffers, and weights after some optimiser steps."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from enfa.edits import Policy
from enfa.edits.check import edits_by
from enfa.graphs import check_graphs
from enfa.graphs.attributes import graph_attributes
from enfa.graphs.check import read_once
from enfa.nn.bag import Bag
from enfa.nn.bag.make import attached
from enfa.nn.bag.trace import in_precision_of, trace
from enfa.plan.check import check_kind, check_program
from enfa.plan.gradients import needing, numbered
from enfa.plan.make import step_plan_of
from enfa.testing.results import distance, results_in_place, scales_of

__all__ = ["Difference", "assert_same_as_full", "differences"]


@dataclass(frozen=True)
class Difference:
    """How far one quantity of a plan is from the reference, relative to its largest entry (see ``scales_of``)."""

    kind: str  # the plan
    mode: str  # "train" or "eval"
    what: str  # "output", "gradient of …" (features too), "buffer …", "weight …" or "output" after n steps
    relative: float


def _device(model: nn.Module) -> torch.device:
    return next((p.device for p in model.parameters()), torch.device("cpu"))


def _leaves(graphs: Sequence[Data], names: Sequence[str], dtype: torch.dtype) -> list[Data]:
    """Copies of the graphs with features of their own, in which gradients arrive."""
    copies = [copy.copy(data) for data in graphs] if names else []
    for data in copies:
        for name in names:
            data[name] = data[name].detach().to(dtype).requires_grad_()
    return copies


def differences(
    model: nn.Module,
    policy: Policy,
    graphs: Sequence[Data],
    *,
    kinds: Sequence[str] = ("ego", "distinct"),
    dtype: torch.dtype = torch.float64,
    modes: Sequence[str] = ("train", "eval"),
    steps: int = 0,
) -> Iterator[Difference]:
    """How far each plan is from the full plan, quantity by quantity. The model itself is not changed."""
    graphs = read_once(graphs)
    checked, names, attr = check_graphs(graphs), needing(graphs), graph_attributes(graphs)
    edits = edits_by(policy, checked)
    program = trace(model, checked, policy, attr)
    check_program(program, checked, edits, repr(policy))
    runs: list[dict[str, dict[str, Tensor]]] = []
    for kind in ("full", *map(check_kind, kinds)):
        # Copying a model takes longer than running it on a few small graphs. So each plan has one copy, on which it is
        # evaluated before it is trained.
        copied = copy.deepcopy(model).to(dtype)
        device = _device(copied)
        made: Any = step_plan_of(numbered(checked, names), edits, program, kind, Bag)
        made.graph_attr = attr
        found: dict[str, dict[str, Tensor]] = {}
        for mode in sorted(modes, key=lambda mode: mode == "train"):
            given = _leaves(graphs, names, dtype)
            plan = in_precision_of(copied, attached(made, given, names))
            found[mode] = results_in_place(copied, plan.to(device), mode == "train", steps)
            for position, data in enumerate(given):
                for name in names:
                    if data[name].grad is not None:
                        found[mode][f"gradient of {name} of graph {position}"] = data[name].grad
        runs.append(found)
    for mode in modes:
        reference = runs[0][mode]
        scales = scales_of(reference)
        for kind, found in zip(kinds, runs[1:]):
            for name, value in reference.items():
                yield Difference(kind, mode, name, distance(found[mode].get(name), value) / scales[name])
            for name in found[mode].keys() - reference.keys():  # a gradient that the full plan has not
                yield Difference(kind, mode, name, float("inf"))


def assert_same_as_full(
    model: nn.Module,
    policy: Policy,
    graphs: Sequence[Data],
    *,
    kinds: Sequence[str] = ("ego", "distinct"),
    dtype: torch.dtype = torch.float64,
    modes: Sequence[str] = ("train", "eval"),
    steps: int = 0,
    tolerance: float | None = None,
) -> None:
    """Check that a model gives the same on every plan: outputs, gradients (of the graphs' ``x`` and ``edge_attr`` too,
    where they have ``requires_grad``), BatchNorm buffers, and weights after ``steps`` Adam steps.

    ``kinds``: the plans to compare with the full one.
    ``tolerance`` is relative: 1e-10 in float64 and 1e-3 in float32 by default (float32 sums of many rows differ by the
    order in which they are added; check exactness in float64). Raises an AssertionError that lists what differs.
    """
    if tolerance is None:
        tolerance = 1e-10 if dtype == torch.float64 else 1e-3
    worst = [
        d
        for d in differences(model, policy, graphs, kinds=kinds, dtype=dtype, modes=modes, steps=steps)
        if not d.relative <= tolerance
    ]
    if worst:
        worst.sort(key=lambda d: -d.relative)
        lines = [f"  {d.kind:9}{d.mode:6} {d.what}: {d.relative:.3g}" for d in worst[:12]]
        more = f"\n  and {len(worst) - 12} more" if len(worst) > 12 else ""
        raise AssertionError(
            f"{len(worst)} quantities differ from the full plan by more than {tolerance:g} (relative):\n"
            + "\n".join(lines) + more
        )  # fmt: skip
