"""A model out of settings: those that its constructor takes, and no others."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any

import torch
from torch import nn

from enfa.graphs.names import unknown
from enfa.nn.convs import CONVS
from enfa.nn.models import MODELS
from enfa.training.config import Config

__all__ = ["arguments", "build_model"]

# Settings that are arguments of models, where these take them.
SETTINGS = (
    "hidden_channels", "num_layers", "conv", "context", "norm", "dropout", "readout", "bag", "jk", "residual", "share",
)  # fmt: skip
# What data and policy say.
GIVEN = ("in_channels", "out_channels", "edge_channels", "mark_channels", "edge_mark_channels")


def arguments(cls: type[nn.Module]) -> dict[str, inspect.Parameter]:
    """All arguments of a constructor, also those that it hands on to its parents' as ``**options``."""
    found: dict[str, inspect.Parameter] = {}
    for base in cls.__mro__:
        if "__init__" not in vars(base):
            continue
        params = list(inspect.signature(vars(base)["__init__"]).parameters.values())[1:]
        for param in params:
            if param.kind in (param.POSITIONAL_OR_KEYWORD, param.KEYWORD_ONLY):
                found.setdefault(param.name, param)
        if not any(param.kind == param.VAR_KEYWORD for param in params):
            break
    return found


def build_model(
    config: Config, in_channels: Any, out_channels: int, edge_channels: Any, mark_channels: int, edge_mark_channels: int
) -> nn.Module:
    """The model, its weights drawn from ``config.seed``. Nothing else draws from the generator's state here."""
    cls = MODELS[config.model]
    takes = arguments(cls)
    own = [name for name in takes if name not in GIVEN and name not in SETTINGS]
    for name in config.model_params:
        if name in SETTINGS:
            raise ValueError(f"Expected {name} as a setting of its own, got it among model_params")
        if name not in own:
            raise unknown(f"an argument of {config.model}", name, own)
    defaults = {f.name: f.default for f in fields(Config)}
    for name in SETTINGS:
        if name not in takes and getattr(config, name) != defaults[name]:
            raise ValueError(f"Expected no {name} for the model {config.model}, which has none, got {getattr(config, name)!r}")
    # compiling says so where marks or attributes cannot be seen, though a model must not do without them
    reads_edges = "conv" not in takes or getattr(CONVS.get(config.conv), "reads_edges", False)
    options = {
        "in_channels": in_channels, "out_channels": out_channels, "mark_channels": mark_channels,
        "edge_channels": edge_channels if reads_edges else None,
        "edge_mark_channels": edge_mark_channels if reads_edges else 0,
        **{name: getattr(config, name) for name in SETTINGS},
    }  # fmt: skip
    options = {name: value for name, value in options.items() if name in takes} | config.model_params
    lacking = [n for n, p in takes.items() if p.default is inspect.Parameter.empty and n not in options]
    if lacking:
        raise ValueError(f"Expected {', '.join(lacking)} among model_params, which {config.model} needs, got none")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = cls(**options)
    return model.double() if config.precision == "64" else model
