"""Convs: one file each. A conv makes the rows of one table from those of another."""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn
from torch_geometric.nn import MessagePassing

from enfa.nn.convs.base import Conv
from enfa.nn.convs.gcn import GCN
from enfa.nn.convs.gin import GIN
from enfa.nn.convs.gine import GINE
from enfa.nn.convs.graphconv import GraphConv
from enfa.nn.convs.widths import asked_for
from enfa.own_code import found, own, place

__all__ = ["CONVS", "Conv", "is_conv", "make_conv", "own_conv"]

CONVS: dict[str, Callable[..., Conv]] = {"gin": GIN, "gine": GINE, "graphconv": GraphConv, "gcn": GCN}


def is_conv(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, (Conv, MessagePassing))


def _makes_conv(value: Any) -> bool:
    return is_conv(value) or (callable(value) and not isinstance(value, type))


def own_conv(name: str | None) -> Callable[[int, int], nn.Module] | None:
    """Out of the user's own files: a class of convs, or a function that makes one. None where they have none of this name."""
    make = own(_makes_conv).get(str(name))
    return None if make is None else partial(_make, str(name), make)


def _make(name: str, make: Callable[[int, int], nn.Module], in_channels: int, out_channels: int) -> nn.Module:
    try:
        return make(in_channels, out_channels)
    except TypeError as error:
        if place(error):  # raised in the user's own code
            raise
        raise ValueError(f"Expected {name}(in_channels, out_channels) to make a conv: {error}") from error


def make_conv(
    conv: str | Callable[[int, int], nn.Module], in_channels: int, out_channels: int, edge_dim: int, norm: str | None,
    **options: bool,
) -> nn.Module:  # fmt: skip
    """A conv by name, or one made by the user's callable ``(in_channels, out_channels) -> conv``, of PyG or of this package.

    ``options`` are those of the conv of this name.
    """
    if isinstance(conv, str):
        mine = found("conv", conv, CONVS, _makes_conv)
        if mine is None:
            return CONVS[conv](in_channels, out_channels, edge_dim, norm, **options)
        conv = partial(_make, conv, mine)
    if not callable(conv):
        raise TypeError(f"Expected conv to be a name or a callable (in, out) -> conv, got {conv!r}")
    return asked_for(conv(in_channels, out_channels), in_channels, out_channels)
