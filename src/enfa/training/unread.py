"""What of the data a model does not read: said in a line, because no input is ignored without a word."""

from __future__ import annotations

from functools import cache

from rich.console import Console

from enfa.datasets.benchmark import Channels
from enfa.training.models import reads_edges
from enfa.training.settings.config import Config
from enfa.training.settings.files import READS_BONDS

__all__ = ["tell_unread", "unread_edges"]


def unread_edges(config: Config, edge_channels: Channels | None, option: str) -> str | None:
    """A line where there are edge attributes, and the conv reads none; with the setting, or ``option``, that reads them."""
    if edge_channels is None or reads_edges(config):
        return None
    instead = READS_BONDS.get(str(config.conv), "gine")
    return f"{config.dataset} has edge attributes, which {option}{config.conv} does not read: {option}{instead} does."


def tell_unread(config: Config, edge_channels: Channels | None, option: str = "conv=") -> None:
    """On standard error, once in a process, however many seeds and folds it trains."""
    line = unread_edges(config, edge_channels, option)
    if line is not None:
        _tell(line)


@cache
def _tell(line: str) -> None:
    Console(stderr=True).print(line, markup=False, highlight=False, soft_wrap=True)  # which a reader may have left
