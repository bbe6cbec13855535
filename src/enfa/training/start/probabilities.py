"""Outputs of a model of the user's own that are probabilities: a loss takes them for logits."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch_geometric.data import Data

from enfa.draws import drawn
from enfa.nn.bag import Bag, make_plan
from enfa.own_code import code_of
from enfa.training.problem import Problem
from enfa.training.settings.config import Config
from enfa.training.start.tried import begun, few, policy_on_pieces
from enfa.training.start.unread import tell

__all__ = ["tell_probabilities"]

DRAWS, SCALE = 8, 4.0  # with such weights no logits stay between 0 and 1 by chance


def tell_probabilities(config: Config, model: nn.Module, problem: Problem, graphs: Sequence[Data]) -> None:
    """A line where outputs are between 0 and 1, or add up to 1, whatever the weights. What cannot be tried so is not: other
    checks say why."""
    if problem.task == "regression" or not code_of([config.model]):
        return
    try:
        with torch.no_grad(), drawn(0):
            found = _within(begun(model).cpu().eval(), make_plan(few(graphs), policy_on_pieces(config), model))
            sums = all(map(_sums, found))
    except Exception:  # of whatever kind: it is the user's code that runs
        return
    if found:
        what, last = (" and add up to 1", "softmax") if sums else ("", "sigmoid")
        tell(
            f"{config.model} returns probabilities (outputs are between 0 and 1{what}, whatever its weights), but the loss "
            f"takes them for logits: leave out the {last} at its end, which losses and predictions have of their own"
        )


def _within(model: nn.Module, plan: Bag) -> list[Tensor]:
    """Outputs with other and other weights, which are changed in place. None where any is outside of 0 to 1, or where they are
    the same whatever the weights: such a model may end in anything."""
    weights = [weight for weight in model.parameters() if not is_lazy(weight) and weight.is_floating_point()]
    found: list[Tensor] = []
    for k in range(DRAWS):
        for weight in weights:
            weight.mul_(torch.randn_like(weight).sign() * (1 if k else SCALE))
        found.append(model(plan))
        if not len(found[k]) or not ((found[k] >= 0) & (found[k] <= 1)).all():
            return []
    return [] if all(torch.equal(found[0], other) for other in found) else found


def _sums(values: Tensor) -> bool:
    return values.shape[1] > 1 and bool(((values.sum(1) - 1).abs() < 1e-3).all())
