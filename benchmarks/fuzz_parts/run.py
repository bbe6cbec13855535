"""One case on the package's plan, and on explicit subgraphs."""

from __future__ import annotations

import copy
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import functional_call

import enfa
from enfa.batch.static.padding import Form, pad_plan
from enfa.nn import root_nodes
from enfa.plan.derived.prepare import lean, prepare
from fuzz_parts.draw import Case
from fuzz_parts.reference import Reference
from fuzz_parts.stack import Stacked, stacked

Results = dict[str, Tensor]


def _deeper(case: Case) -> enfa.DSGNN | enfa.DSSGNN:
    """The case's model with a layer or two more."""
    return replace(case, settings={**case.settings, "depth": case.settings["depth"] + 1 + case.number % 2}).model()


def _parts_are_known(case: Case, model: nn.Module) -> bool:
    """Whether parts of compiled bags are plans. What sums over bags is planned anew, and so are rows that count but are not
    pooled: how often parts of a bag have them is not known."""
    counted = any(isinstance(part, nn.BatchNorm1d) for part in model.modules())
    readout = case.settings["readout"]
    return case.settings["model"] == "DSGNN" and readout != "node" and not (readout == "root" and counted)


def plan_of(case: Case, model: enfa.DSGNN | enfa.DSSGNN) -> enfa.Bag:
    """The plan of the case's kind."""
    kind, graphs = case.settings["plan"], case.graphs
    if kind in ("distinct", "ego"):
        return enfa.make_plan(graphs, case.policy, model, kind)
    if kind == "padded":
        plan = enfa.make_plan(graphs, case.policy, model)
        if not plan.countable:  # a batch that BatchNorm would refuse is not padded
            return plan
        plan = lean(prepare(plan, plan.program.needs), plan.program.needs)
        form, rng = Form(plan), case.rng(1)
        least = form.sizes(plan.tensors())
        return pad_plan(plan, dict(zip(form.names, (least + rng.integers(0, 9, len(least)) * (least > 0)).tolist())))
    first = graphs[: case.first] if kind == "extend" else graphs
    ahead = case.draw is None or _parts_are_known(case, model)
    made_for = _deeper(case) if kind == "first layers" else model
    compiled = enfa.compile(first, case.policy, made_for, progress=False, threads=1, ahead=ahead)
    if kind == "extend" and case.first < len(graphs):
        compiled.extend(graphs[case.first :])
    if kind == "first layers":
        compiled = compiled.first_layers(case.settings["depth"])
    if kind == "saved":
        with tempfile.TemporaryDirectory() as folder:
            compiled.save(Path(folder) / "it.enfa")
            compiled = enfa.load_compiled(Path(folder) / "it.enfa")
    return compiled.plan(case.chosen, case.draw, case.epoch)


def _weights(case: Case, out: Tensor) -> Tensor:
    """Of the linear functional that is the loss."""
    return torch.from_numpy(case.rng(2).standard_normal(tuple(out.shape))).to(out.dtype)


def _collect(case: Case, module: nn.Module, out: Tensor) -> Results:
    module.zero_grad()
    (out * _weights(case, out)).sum().backward()
    found = {"output": out.detach()}
    for name, parameter in module.named_parameters():
        grad = parameter.grad
        found[f"gradient {name}"] = torch.zeros_like(parameter.data) if grad is None else grad
    for name, buffer in module.named_buffers():
        if "running" in name or "tracked" in name:
            found[f"buffer {name}"] = buffer
    return found


def on_plan(case: Case, model: enfa.DSGNN | enfa.DSSGNN, plan: enfa.Bag) -> Results:
    """Changes the model's buffers and gradients."""
    torch.default_generator.manual_seed(case.number)  # for the dropout in the head
    out = model(plan)
    if case.options["readout"] == "root":
        return {**_collect(case, model, out), "roots": root_nodes(plan).double()}
    return _collect(case, model, out)


class Full:
    """The package's own full plan, for dropout in training: masks are drawn from what rows are computed from."""

    def __init__(self, case: Case, model: enfa.DSGNN | enfa.DSSGNN) -> None:
        self.case, self.model = case, copy.deepcopy(model)
        self.state = copy.deepcopy(model.state_dict())
        compiled = enfa.compile(case.graphs, case.policy, model, progress=False, kind="full")
        self.plan = compiled.plan(case.chosen, case.draw, case.epoch)

    exact_slopes = False

    def run(self) -> Results:
        return {name: value.clone() for name, value in on_plan(self.case, self.model, self.plan).items()}

    def disturbed(self, stream: int, level: float) -> Results:
        """Weights off by a little."""
        self.model.load_state_dict(self.state)
        _add_noise(self.model, self.case.rng(3, stream), level)
        return self.run()

    def slope(self, name: str, direction: Tensor) -> float:
        """The derivative of the loss as a parameter moves, by differences of fourth order: seven digits or so."""

        def loss(step: float) -> float:
            self.model.load_state_dict(self.state)
            with torch.no_grad():
                self.model.get_parameter(name).add_(direction, alpha=step)
                torch.default_generator.manual_seed(self.case.number)
                out = self.model(self.plan)
                return float((out * _weights(self.case, out)).sum())

        h = 1e-5
        return (8 * (loss(h) - loss(-h)) - (loss(2 * h) - loss(-2 * h))) / (12 * h)


def _add_noise(module: nn.Module, rng: np.random.Generator, level: float) -> None:
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(torch.from_numpy(1 + level * rng.standard_normal(tuple(parameter.shape))))


class Explicit:
    """The reference of a case, to be run as often as wanted."""

    def __init__(self, case: Case, model: nn.Module) -> None:
        self.case, self.subs = case, stacked(case)
        self.reference = Reference(case, model)
        self.names = {self.reference.name_of(n): n for n, _ in [*model.named_parameters(), *model.named_buffers()]}
        self.state = {name: value.clone() for name, value in self.reference.state_dict().items()}

    def run(self, subs: Stacked | None = None) -> Results:
        subs = subs or self.subs
        found = _collect(self.case, self.reference, self.reference(subs))
        found = {self._named(name): value.clone() for name, value in found.items()}
        if self.case.options["readout"] == "root":
            found["roots"] = subs.root_node.double()  # one a row, or both ends of an edge
        return found

    def _named(self, name: str) -> str:
        what, _, tensor = name.partition(" ")
        return f"{what} {self.names[tensor]}" if tensor else what

    def disturbed(self, stream: int, level: float) -> Results:
        """Weights and features off by a little, pairs and edges in another order."""
        rng = self.case.rng(3, stream)
        self.reference.load_state_dict(self.state)
        _add_noise(self.reference, rng, level)
        return self.run(self.subs.shuffled(rng).noisy(rng, level))

    exact_slopes = True

    def slope(self, name: str, direction: Tensor) -> float:
        """The derivative of the loss as a parameter moves, carried forward through the model beside the rows.

        Equal rows have equal derivatives, so nothing grows that must cancel, as it does on the way back.
        """
        self.reference.load_state_dict(self.state)
        mine = self.reference.name_of(name)
        value = self.reference.get_parameter(mine).detach()
        with torch.no_grad(), forward_ad.dual_level():
            dual = forward_ad.make_dual(value, direction.reshape(value.shape))
            out, moved = forward_ad.unpack_dual(functional_call(self.reference, {mine: dual}, (self.subs,)))
            return 0.0 if moved is None else float((moved * _weights(self.case, out)).sum())
