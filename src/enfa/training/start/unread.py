"""What of the data a model does not read or cannot learn: said in a line, because nothing is ignored without a word."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
from rich.console import Console

from enfa.datasets.benchmark import Benchmark, Channels
from enfa.datasets.known import is_table
from enfa.plan.step import Step
from enfa.training.models import reads_edges
from enfa.training.settings.config import Config
from enfa.training.settings.files import READS_BONDS

__all__ = ["tell", "tell_unlearnt", "tell_unread", "unlearnt_classes", "unread_edges"]


def unread_edges(
    config: Config, edge_channels: Channels | None, option: str = "conv=", steps: Iterable[Step] | None = None
) -> str | None:
    """A line where there are edge attributes, and the conv reads none; with the setting, or ``option``, that reads them. Of a
    model whose convs are no setting its ``steps`` tell."""
    if edge_channels is None:
        return None
    if reads_edges(config):
        none = steps is not None and not any(step.edges for step in steps)
        return f"{config.dataset} has edge attributes, which {config.model} does not read." if none else None
    instead = READS_BONDS.get(str(config.conv), "gine")
    return f"{config.dataset} has edge attributes, which {option}{config.conv} does not read: {option}{instead} does."


def tell_unread(config: Config, edge_channels: Channels | None, *known: Any) -> None:
    """On standard error, once in a process, however many seeds and folds it trains."""
    line = unread_edges(config, edge_channels, *known)
    if line is not None:
        tell(line)


def unlearnt_classes(data: Benchmark, train: np.ndarray) -> list[str]:
    """The classes that there are, and not among the labels to train on."""
    if data.task != "multiclass":
        return []
    lacking = sorted(set(range(data.num_outputs)) - set(data.labels[train].tolist()))
    return [data.classes[k] if data.classes else str(k) for k in lacking]


def tell_unlearnt(config: Config, classes: list[str]) -> None:
    """As for what is not read. No error, because the other classes are learnt, and a rare one may miss in a training part."""
    if classes:
        which, what = ", ".join(map(repr, classes)), "molecule" if is_table(config.dataset) else "graph"
        kind = "the class" if len(classes) == 1 else "the classes"
        tell(f"{config.dataset} has no {what} of {kind} {which} to train on: the model cannot learn to predict {which}.")


@cache
def tell(line: str) -> None:
    Console(stderr=True).print(line, markup=False, highlight=False, soft_wrap=True)  # which a reader may have left
