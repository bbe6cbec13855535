"""What changes when a node's subgraphs are left out of the bag: the model is computed on the rest of it, in full."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from enfa.edits import Edits
from enfa.edits.join import join_edits
from enfa.graphs import GraphSet
from enfa.nn.bag.bag import Bag
from enfa.nn.bag.trace import in_precision_of
from enfa.plan.make import step_plan_of
from enfa.plan.step import Program

__all__ = ["subgraphs_of_nodes", "without_each"]

AT_ONCE = 32  # bags in one plan, which share most of their rows


def subgraphs_of_nodes(graph: GraphSet, edits: Edits) -> list[np.ndarray] | None:
    """The subgraphs that are about each node of one graph: whose root it is, or an end of whose root edge.

    Where a policy has no roots and every subgraph edits one node, it is about that node. None where it is about no node.
    """
    if edits.root is not None:
        return [np.flatnonzero((edits.root == v).any(axis=1)) for v in range(graph.num_nodes)]
    if len(edits.edge) or edits.kept.any() or (np.diff(edits.node_ptr) != 1).any():
        return None
    return [np.flatnonzero(edits.node == v) for v in range(graph.num_nodes)]


def without_each(
    model: nn.Module, graph: GraphSet, edits: Edits, program: Program, attr: dict[str, Tensor], parts: list[np.ndarray],
    choose: Callable[[Tensor, Bag], Tensor],
) -> Tensor:  # fmt: skip
    """[parts]: the prediction without the subgraphs of each part; NaN where none would be left.

    ``choose`` takes [parts] numbers from the outputs for that many copies of the graph.
    """
    found = torch.full((len(parts),), torch.nan, dtype=torch.float64)
    kept = [np.setdiff1d(np.arange(edits.num_subgraphs), part) for part in parts]
    places = np.array([place for place, subs in enumerate(kept) if len(subs)], np.int64)
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    for start in range(0, len(places), AT_ONCE):
        here = places[start : start + AT_ONCE]
        joined = edits.subset(graph, [0], kept[here[0]])
        for copies, place in enumerate(here[1:], 1):
            joined = join_edits(joined, graph.subset([0] * copies), edits.subset(graph, [0], kept[place]))
        plan = step_plan_of(graph.subset([0] * len(here)), joined, program, "distinct", Bag)
        assert isinstance(plan, Bag)
        plan.graph_attr = {name: value.expand(len(here), *value.shape[1:]) for name, value in attr.items()}
        with torch.no_grad():
            out = choose(model(in_precision_of(model, plan).to(device)), plan)
        found[torch.from_numpy(here)] = out.double().cpu()
    return found
