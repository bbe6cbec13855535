"""A model of the user's own, tried on a few of the graphs that it is to be trained on.

What such a model computes beside the verbs (with ``h.value``, say) may depend on how many rows a plan has, and nothing else
sees it.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch_geometric.data import Data

from enfa.edits import Policy
from enfa.testing.same import differences
from enfa.training.build import make_policy, training_draw
from enfa.training.settings.code import of_own_code
from enfa.training.settings.config import Config
from enfa.training.start.unread import tell

__all__ = ["LOOKED_AT", "begun", "check_same_rows", "few", "policy_on_pieces"]

LOOKED_AT = 100  # graphs, of which few are tried
FEW, NODES = 3, 32  # small enough to write out all rows in no time
# How far outputs and gradients may be off, which no rounding reaches: norms of rows that hardly differ magnify it, and it may
# decide which way a ReLU goes. The second is for what runs in it only.
PRECISIONS = {torch.float64: (1e-6, 1e-2), torch.float32: (1e-2, float("inf"))}


def check_same_rows(config: Config, model: nn.Module, graphs: Sequence[Data]) -> None:
    """Refuse a model of the user's own that computes other outputs on the rows of the plan than on all rows. One with other
    gradients only, or that cannot be tried (it cannot be copied, say), is trained, and a line says so."""
    if config.plan == "full" or not of_own_code(config):
        return
    policy, untried = policy_on_pieces(config), ""
    for dtype, (of_outputs, of_gradients) in PRECISIONS.items():
        try:
            found = list(differences(begun(model), policy, few(graphs), kinds=("full", config.plan), dtype=dtype))
        except Exception as error:  # of whatever kind: it is the user's code that runs
            untried = untried or f"{type(error).__name__}: {error}".partition("\n")[0]
            continue
        # what is NaN on all rows is not off: it tells nothing
        gradients = [d for d in found if d.what.startswith("gradient") and d.relative > of_gradients]
        off = [d for d in found if not d.what.startswith("gradient") and d.relative > of_outputs] + gradients
        again = [d for d in off if d.kind == "full"]
        if again:
            untried = f"its {again[0].what} is another whenever it is run, so it draws from a generator of its own"
            break
        if not off:
            return
        where, size = f"plan={config.plan}", f"is off by {off[0].relative:.2g} of its size ({off[0].mode})"
        if off == gradients:
            return tell(f"{config.model}: the outputs on {where} are those on all rows, but the {off[0].what} {size}")
        raise ValueError(
            f"Expected the same {off[0].what} on {where} as on all rows from model={config.model}, got one that {size}: "
            f"it may read the number of rows, or mix them (docs/own_models.md). enfa.testing.assert_same_as_full tells more; "
            f"plan=full trains it as it is"
        )
    tell(f"{config.model} was not compared with the full plan before it is trained: {untried}")


def policy_on_pieces(config: Config) -> Policy:
    """Whole bags, of graphs that need not be those of the dataset."""
    draw = training_draw(config)
    return (make_policy(config) if draw is None else draw.policy).for_any_graph()


@torch.no_grad()
def begun(model: nn.Module) -> nn.Module:
    """A copy with no weight of 0, as scales of a residual part, or last layers, may begin with: it hides what is multiplied by
    it."""
    copied = deepcopy(model)
    for weight in copied.parameters():
        if not is_lazy(weight):
            weight.masked_fill_(weight == 0, 0.1)
    return copied


def few(graphs: Sequence[Data]) -> list[Data]:
    """The largest of the small graphs; of large ones, pieces."""
    small = sorted((graph for graph in graphs if 0 < _size(graph) <= NODES), key=_size)[-FEW:]
    return [*small, *map(_piece, graphs[: FEW - len(small)])]


def _size(graph: Data) -> int:
    return graph.num_nodes or 0


def _piece(graph: Data) -> Data:
    """Some nodes of a graph, around one that hears of many others."""
    nodes = torch.arange(0)
    if graph.edge_index.numel():
        nodes = graph.edge_index[1].bincount().argmax()[None]
        while len(nodes) < NODES:
            near = graph.edge_index[:, torch.isin(graph.edge_index, nodes).any(0)].unique()
            if len(near) == len(nodes):
                break
            nodes = torch.cat([nodes, near[~torch.isin(near, nodes)]])
    inside = torch.zeros(_size(graph), dtype=torch.bool)
    inside[nodes[:NODES] if len(nodes) else slice(NODES)] = True
    return graph.subgraph(inside)
