"""Gradient times input, per node, summed over the bag.

Of floats the input is the feature row. Of categories it is what a module makes of them, the embedded row: they themselves have
no gradient. In the plan every node is a kind by itself, so that each row of table 0 is one node's, and the gradient of a row is
the sum over all pairs that it stands for.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from enfa.edits import Edits
from enfa.graphs import GraphSet
from enfa.nn.bag.bag import Bag
from enfa.nn.bag.trace import in_precision_of
from enfa.nn.encode import Categorical, NodeEncoder
from enfa.nn.rowwise.rows import Rows
from enfa.plan.gradients import numbered
from enfa.plan.make import step_plan_of
from enfa.plan.step import Program

__all__ = ["gradient_times_input"]


@contextmanager
def _embedded(model: nn.Module) -> Iterator[list[Tensor]]:
    """What modules make of integers of table 0, as leaves that take the place of the modules' outputs."""
    found: list[Tensor] = []
    encoders = {id(m.embed) for m in model.modules() if isinstance(m, NodeEncoder) and isinstance(m.embed, Categorical)}

    def leaf(value: Tensor) -> Tensor:
        found.append(value.detach().requires_grad_())
        return found[-1]

    def note(module: nn.Module, args: tuple[Any, ...], out: Any) -> Any:
        if id(module) in encoders:
            return leaf(out)
        given = args[0] if args else None
        if not isinstance(given, Rows) or not isinstance(out, Rows) or given.number != 0 or out.number != 0:
            return None
        return out.of(leaf(out.value)) if not given.is_floating_point() and out.is_floating_point() else None

    modules = [m for m in model.modules() if not any(True for _ in m.children())]
    hooks = [module.register_forward_hook(note) for module in modules]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def gradient_times_input(
    model: nn.Module, graph: GraphSet, edits: Edits, program: Program, attr: dict[str, Tensor], kind: str,
    choose: Callable[[Tensor, Bag], Tensor],
) -> Tensor:  # fmt: skip
    """[nodes]: of the number that ``choose`` takes from the outputs. ``graph``: one graph; the model is in evaluation mode."""
    plan: Any = step_plan_of(numbered(graph, ["x"]), edits, program, kind, Bag)
    node = plan.x_rows[:, 0]
    rows = np.ascontiguousarray(graph.x[graph.node_kind])
    floats = rows.dtype.kind == "f"
    plan.x_rows = torch.from_numpy(rows)[node]
    plan.limits = () if floats or not len(rows) else tuple(rows.max(axis=0).tolist()), plan.limits[1]
    plan.graph_attr = attr
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    plan = in_precision_of(model, plan).to(device)
    with torch.enable_grad(), _embedded(model) as leaves:
        if floats:
            plan.x_rows = plan.x_rows.detach().requires_grad_()
        prediction = choose(model(plan), plan)
        if not floats and not leaves:
            raise ValueError(
                "Expected a model that embeds its integer features by a module, such as nn.Embedding, to take the gradient "
                "there, got one that does not"
            )
        inputs = [*leaves, plan.x_rows] if floats else leaves
        gradients = torch.autograd.grad(prediction, inputs, allow_unused=True)
    of_node = node.to(device)
    total = torch.zeros(graph.num_nodes, dtype=torch.float64, device=device)
    for value, gradient in zip(inputs, gradients):
        if gradient is not None:
            each = (gradient.double() * value.detach().double()).flatten(1).sum(1)
            total.index_add_(0, of_node if value is plan.x_rows else of_node[plan.feature], each)
    return total.cpu()
