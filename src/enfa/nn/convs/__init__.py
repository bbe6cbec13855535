"""Convs: one file each. A conv makes the rows of one table from those of another."""

from collections.abc import Callable

from torch import nn

from enfa.graphs.names import unknown
from enfa.nn.convs.base import Conv
from enfa.nn.convs.gcn import GCN
from enfa.nn.convs.gin import GIN
from enfa.nn.convs.gine import GINE
from enfa.nn.convs.graphconv import GraphConv

__all__ = ["CONVS", "Conv", "make_conv"]

CONVS: dict[str, Callable[..., Conv]] = {"gin": GIN, "gine": GINE, "graphconv": GraphConv, "gcn": GCN}


def make_conv(
    conv: str | Callable[[int, int], nn.Module], in_channels: int, out_channels: int, edge_dim: int, norm: str | None,
    **options: bool,
) -> nn.Module:  # fmt: skip
    """A conv by name, or one made by the user's callable ``(in_channels, out_channels) -> conv``, of PyG or of this package.

    ``options`` are those of the conv of this name.
    """
    if isinstance(conv, str):
        if conv not in CONVS:
            raise unknown("conv", conv, CONVS)
        return CONVS[conv](in_channels, out_channels, edge_dim, norm, **options)
    if not callable(conv):
        raise TypeError(f"Expected conv to be a name or a callable (in, out) -> conv, got {conv!r}")
    return conv(in_channels, out_channels)
