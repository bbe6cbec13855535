"""Which nodes a prediction comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from enfa.attribution.gradients import gradient_times_input
from enfa.attribution.left_out import subgraphs_of_nodes, without_each
from enfa.edits import Policy
from enfa.edits.check import edits_by
from enfa.graphs import check_graphs
from enfa.graphs.attributes import graph_attributes
from enfa.graphs.numbers import whole
from enfa.nn.bag.bag import Bag
from enfa.nn.bag.trace import in_precision_of, trace
from enfa.plan.check import check_kind, check_program
from enfa.plan.make import step_plan_of
from enfa.plan.step import Program

__all__ = ["Explanation", "explain"]


@dataclass(frozen=True)
class Explanation:
    """One number of a model's output, and what each node has to do with it, in the units of that number."""

    outputs: Tensor  # float64 [outputs], of the graph, or of the node explained
    output: int  # which of them is explained
    node: int | None  # whose outputs they are; None: the graph's
    gradient: Tensor  # float64 [nodes]: gradient times input, summed over the bag
    left_out: Tensor | None  # float64 [nodes]: the prediction, less what it is without the node's subgraphs; NaN: none is left
    why_not: str | None = None  # why nothing can be left out, where left_out is None

    @property
    def prediction(self) -> float:
        return float(self.outputs[self.output])

    def scaled(self, std: Sequence[float], mean: Sequence[float]) -> Explanation:
        """The same for ``outputs * std + mean``: in the units that the data had before they were normalised."""
        outputs = self.outputs * torch.tensor(std, dtype=torch.float64) + torch.tensor(mean, dtype=torch.float64)
        unit = std[self.output]
        left_out = None if self.left_out is None else self.left_out * unit
        return replace(self, outputs=outputs, gradient=self.gradient * unit, left_out=left_out)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; None where there is no number."""

        def plain(values: Tensor) -> list[float | None]:
            return [v if np.isfinite(v) else None for v in values.tolist()]

        left_out = [None] * len(self.gradient) if self.left_out is None else plain(self.left_out)
        return {
            "prediction": self.prediction, "output": self.output, "outputs": self.outputs.tolist(), "node": self.node,
            **({} if self.why_not is None else {"why_not": self.why_not}),
            "nodes": [
                {"node": v, "gradient": g, "left_out": change}
                for v, (g, change) in enumerate(zip(plain(self.gradient), left_out))
            ],
        }  # fmt: skip


def explain(
    model: nn.Module, policy: Policy, graph: Data, *, output: int | None = None, node: int | None = None,
    kind: str = "distinct", position: int = 0,
) -> Explanation:  # fmt: skip
    """Which nodes of a graph a prediction comes from: exactly, from plans like those that predict. The model is not changed.

    Two answers for every node, both in evaluation mode, and in the units of the model's outputs:

    - ``gradient``: gradient times input of its features (of categories: of their embedded rows), summed over the bag.
    - ``left_out``: the prediction, less that of the bag without the subgraphs about this node (those whose root it is, or an
      end of whose root edge; of node deletion, the one that lacks it), computed anew.

    Args:
        model: any model on the verbs of a bag, with outputs [graphs, channels] or [nodes, channels].
        output: which output; by default the largest.
        node: where outputs are those of nodes, whose.
        kind: the plan for the gradients, whose numbers are the same in all plans.
        position: of the graph in its dataset, for policies that draw by it.
    """
    if not isinstance(graph, Data):
        raise TypeError(f"Expected one graph of PyG to explain, got {type(graph).__name__}")
    checked = replace(check_graphs([graph]), first=whole("position", position, 0))
    if not checked.num_nodes:
        raise ValueError("Expected a graph with nodes to explain, got one without")
    attr, edits = graph_attributes([graph]), edits_by(policy, checked)
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        program = trace(model, checked, policy, attr)
        check_program(program, checked, edits, repr(policy))
        plan: Any = step_plan_of(checked, edits, program, check_kind(kind), Bag)
        plan.graph_attr = attr
        device = next((p.device for p in model.parameters()), torch.device("cpu"))
        with torch.no_grad():
            every = model(in_precision_of(model, plan).to(device))
        row = _row(every, plan, node)
        outputs = every[row].detach().double().cpu()
        chosen = int(outputs.argmax()) if output is None else whole("output", output, 0, len(outputs) - 1)

        def choose(out: Tensor, of: Bag) -> Tensor:
            """[copies of the graph]; a node's outputs stand behind those of the copies before."""
            return out.reshape(of.num_graphs, -1, out.shape[1])[:, row, chosen]

        given = model, checked, edits, program, attr
        gradient = gradient_times_input(*given, kind, lambda out, of: choose(out, of)[0])
        parts, left_out = subgraphs_of_nodes(checked, edits), None
        why_not = _why_not(program, parts is not None, node is not None)
        if why_not is None:
            left_out = outputs[chosen] - without_each(*given, parts or [], choose)
    finally:
        for module, training in modes:
            module.training = training
    return Explanation(outputs, chosen, node, gradient, left_out, why_not)


def _why_not(program: Program, about_nodes: bool, of_nodes: bool) -> str | None:
    """Why no subgraph can be left out of the bag, where that is so."""
    if not about_nodes:
        return "the policy does not say which node each subgraph is about"
    if any(step.op == "diagonal" or step.along == "subgraphs" for step in program.steps):
        return "the model reads the subgraph of every node (bag.diagonal, along='subgraphs'), so none can be missing"
    if of_nodes and any(step.op == "root" for step in program.steps):
        return "outputs are those of roots, which have none without their subgraph"
    return None


def _row(out: Any, plan: Bag, node: int | None) -> int:
    """Of the outputs that are explained."""
    if not isinstance(out, Tensor) or out.ndim != 2 or not out.shape[1]:
        raise ValueError("Expected a model whose output is a tensor [graphs or nodes, channels] to explain, got another")
    if node is None:
        if len(out) != 1:
            raise ValueError(f"Expected node, because the model has {len(out)} rows of outputs for this graph, got none")
        return 0
    node = whole("node", node, 0, plan.num_nodes - 1)
    roots = None if plan.root_nodes is None else plan.root_nodes.flatten().tolist()
    if len(out) != plan.num_nodes or (roots is not None and roots != list(range(plan.num_nodes))):
        raise ValueError(
            f"Expected outputs for each of {plan.num_nodes} nodes, in order, to explain node {node}, got {len(out)}"
        )
    return node
