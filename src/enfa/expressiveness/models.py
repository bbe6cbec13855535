"""Model classes by name."""

from collections.abc import Callable
from typing import Any

from torch import nn

from enfa.edits import Policy
from enfa.edits.made_for import check_policy
from enfa.graphs import GraphSet
from enfa.graphs.graphset import channels
from enfa.graphs.names import check_named
from enfa.nn.models.arguments import arguments
from enfa.nn.models.registry import MODELS

__all__ = ["model_class"]


def model_class(name: str, graphs: GraphSet, policy: Policy, width: int = 12) -> Callable[[int], nn.Module]:
    """Number of layers -> a model that reads what graphs and policy offer: edges, too, where they say something.

    A width of 12 suits every model: attention has heads that must be of one size.
    """
    check_named("the model", name, MODELS)
    check_policy(name, policy)
    options: dict[str, Any] = {"mark_channels": policy.mark_channels}
    if graphs.edge_attr is not None or policy.edge_mark_channels:
        options["conv"] = "gine"
        options["edge_channels"] = None if graphs.edge_attr is None else channels(graphs.edge_attr)
        options["edge_mark_channels"] = policy.edge_mark_channels
    made: Callable[..., nn.Module] = MODELS[name]
    options |= {"in_channels": channels(graphs.x), "hidden_channels": width, "out_channels": 16}
    takes = arguments(MODELS[name])
    if "num_layers" not in takes:
        raise ValueError(f"Expected a model with an argument num_layers, of which all from 1 on are asked, got {name}")
    options = {key: value for key, value in options.items() if key in takes}
    return lambda layers: made(num_layers=layers, **options)
