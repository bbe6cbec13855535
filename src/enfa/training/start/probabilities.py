"""Outputs of a model of the user's own that are probabilities: a loss takes them for logits."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch_geometric.data import Data

from enfa.draws import drawn
from enfa.nn.bag import make_plan
from enfa.own_code import code_of
from enfa.training.build import make_policy, training_draw
from enfa.training.problem import Problem
from enfa.training.settings.config import Config
from enfa.training.start.tried import few
from enfa.training.start.unread import tell

__all__ = ["tell_probabilities"]

DRAWS, SCALE = 8, 4.0  # with such weights no logits stay between 0 and 1 by chance


def tell_probabilities(config: Config, model: nn.Module, problem: Problem, graphs: Sequence[Data]) -> None:
    """A line where outputs are between 0 and 1, or add up to 1, whatever the weights. What cannot be tried so is not: other
    checks say why."""
    if problem.task == "regression" or not code_of([config.model]):
        return
    draw = training_draw(config)
    policy = (make_policy(config) if draw is None else draw.policy).for_any_graph()
    try:
        with torch.no_grad(), drawn(0):
            plan = make_plan(few(graphs), policy, model)
            found = [_other(model)(plan) for _ in range(DRAWS)]
            within, sums = all(map(_within, found)), all(map(_sums, found))
    except Exception:  # of whatever kind: it is the user's code that runs
        return
    if within:
        what, last = (" and add up to 1", "softmax") if sums else ("", "sigmoid")
        tell(
            f"{config.model} returns probabilities (outputs are between 0 and 1{what}, whatever its weights), but the loss "
            f"takes them for logits: leave out the {last} at its end, which losses and predictions have of their own"
        )


def _other(model: nn.Module) -> nn.Module:
    """A copy with other weights, on the CPU and in evaluation mode."""
    copied = deepcopy(model).cpu().eval()
    for weight in copied.parameters():
        if not is_lazy(weight) and weight.is_floating_point():
            weight.mul_(SCALE * torch.randn_like(weight).sign())
    return copied


def _within(values: Tensor) -> bool:
    return bool(len(values)) and bool(((values >= 0) & (values <= 1)).all())


def _sums(values: Tensor) -> bool:
    return values.shape[1] > 1 and bool(((values.sum(1) - 1).abs() < 1e-3).all())
