"""Model classes by name."""

from collections.abc import Callable
from typing import Any

from torch import nn

from enfa.edits import Policy
from enfa.edits.made_for import check_policy
from enfa.graphs import GraphSet
from enfa.graphs.graphset import channels
from enfa.graphs.names import unknown
from enfa.nn.models.registry import MODELS

__all__ = ["model_class"]


def model_class(name: str, graphs: GraphSet, policy: Policy, width: int = 12) -> Callable[[int], nn.Module]:
    """Number of layers -> a model that reads what graphs and policy offer: edges, too, where they say something.

    A width of 12 suits every model: attention has heads that must be of one size.
    """
    if name not in MODELS:
        raise unknown("the model", name, MODELS)
    check_policy(name, policy)
    options: dict[str, Any] = {"mark_channels": policy.mark_channels}
    if graphs.edge_attr is not None or policy.edge_mark_channels:
        options["conv"] = "gine"
        options["edge_channels"] = None if graphs.edge_attr is None else channels(graphs.edge_attr)
        options["edge_mark_channels"] = policy.edge_mark_channels
    made: Callable[..., nn.Module] = MODELS[name]
    return lambda layers: made(channels(graphs.x), width, 16, layers, **options)
