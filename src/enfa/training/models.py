"""A model out of settings: those that its constructor takes, and no others."""

import difflib
import inspect
from dataclasses import fields
from typing import Any

from torch import nn

from enfa.draws import drawn
from enfa.graphs.names import unknown
from enfa.nn.convs import CONVS, Conv, own_conv
from enfa.nn.models.arguments import arguments
from enfa.nn.models.registry import MODELS
from enfa.own_code import place
from enfa.training.settings.arguments import GIVEN, OWN_DEFAULT, SETTINGS
from enfa.training.settings.config import Config

__all__ = ["build_model", "reads_edges"]


def build_model(config: Config, given: dict[str, Any]) -> nn.Module:
    """The model, its weights drawn from ``config.seed``. Nothing else draws from the generator's state here.

    ``given``: what data and policy say, by the names of arguments (``GIVEN``).
    """
    make = MODELS[config.model]
    takes = arguments(make)
    _check(config, [name for name in takes if name not in GIVEN and name not in SETTINGS])
    if not reads_edges(config):  # compiling says so where marks cannot be seen
        given = {**given, "edge_channels": None, "edge_mark_channels": 0}
    said = {name: getattr(config, name) for name in SETTINGS}
    options = {**given, **{name: v for name, v in said.items() if v is not None or name not in OWN_DEFAULT}}
    # a value that is the default anyway is left out: a model need not take all that its parents do
    options = {n: v for n, v in options.items() if n in takes and v != takes[n].default} | config.model_params
    lacking = [name for name, param in takes.items() if param.default is param.empty and name not in options]
    if lacking:
        close = difflib.get_close_matches(lacking[0], [*GIVEN, *SETTINGS], n=1)
        hint = f" (an argument called {close[0]} is given by itself)" if close else ""
        raise ValueError(f"Expected {', '.join(lacking)} among model_params, which {config.model} needs, got none{hint}")
    with drawn(config.seed):
        try:
            model = make(**options)
        except TypeError as error:
            if place(error):  # raised in the user's own code
                raise
            raise ValueError(f"Expected arguments that {config.model} takes: {error}") from error
    if not isinstance(model, nn.Module):
        raise ValueError(f"Expected {config.model} to make a torch.nn.Module, got {type(model).__name__}")
    if type(model).forward is nn.Module.forward:
        raise ValueError(f"Expected {config.model} to have a method forward(bag), got none")
    return model.double() if config.precision == "64" else model


def reads_edges(config: Config) -> bool:
    """Whether the model has a conv that reads attributes and marks of edges."""
    if "conv" not in arguments(MODELS[config.model]):
        return True
    conv: Any = CONVS.get(str(config.conv))
    mine = own_conv(config.conv) if conv is None else None
    if mine is not None:
        with drawn(config.seed):
            conv = mine(config.hidden_channels, config.hidden_channels)
        if not isinstance(conv, Conv):  # of PyG
            return "edge_attr" in inspect.signature(conv.forward).parameters and getattr(conv, "edge_dim", 1) is not None
    return conv is None or conv.reads_edges


def _check(config: Config, own: list[str]) -> None:
    """Refuse what would be ignored."""
    takes, defaults = arguments(MODELS[config.model]), {f.name: f.default for f in fields(Config)}
    for name in config.model_params:
        if name in SETTINGS:
            raise ValueError(f"Expected {name} as a setting of its own, got it among model_params")
        if name not in own:
            raise (
                unknown(f"an argument of {config.model}", name, own)
                if own
                else ValueError(f"Expected no model_params for {config.model}, which has no arguments of its own, got {name!r}")
            )
    for name in SETTINGS:
        value = getattr(config, name)
        if name not in takes and value != defaults[name]:
            raise ValueError(f"Expected no {name} for the model {config.model}, which has none, got {value!r}")
