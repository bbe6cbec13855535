"""What the constructors of models take."""

from typing import Any

from enfa.nn.models.arguments import arguments
from enfa.nn.models.registry import DEFAULTS, MODELS

__all__ = ["GIVEN", "OWN_DEFAULT", "SETTINGS", "default_of"]

# Settings that are arguments of models, where these take them.
SETTINGS = (
    "hidden_channels", "num_layers", "conv", "context", "norm", "dropout", "readout", "bag", "jk", "residual", "share",
)  # fmt: skip
# Those that are what the model's constructor says where a config does not.
OWN_DEFAULT = ("conv", "readout", "bag", "jk", "residual")
# What data and policy say.
GIVEN = ("in_channels", "out_channels", "edge_channels", "mark_channels", "edge_mark_channels")


def default_of(model: str, name: str) -> Any:
    """What a model's constructor has for an argument that is not given; None where it does not take it, or has there what no
    config can say."""
    if model in DEFAULTS:  # which needs no PyTorch
        return DEFAULTS[model][name]
    param = arguments(MODELS[model]).get(name)
    return param.default if param is not None and isinstance(param.default, str | bool) else None
