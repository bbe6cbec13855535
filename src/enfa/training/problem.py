"""What a model learns: its task, its metric, its inputs and its outputs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from enfa.datasets import Benchmark
from enfa.datasets.benchmark import Channels
from enfa.datasets.npz.read import Need
from enfa.datasets.one_graph import OneGraph
from enfa.datasets.scale import mean_and_std

__all__ = ["Problem"]


@dataclass(frozen=True)
class Problem:
    """What a model must know of a dataset: all that a checkpoint needs to be used without it."""

    task: str
    metric: str
    num_outputs: int
    in_channels: Channels
    edge_channels: Channels | None
    level: str = "graph"
    targets: list[str] | None = None
    mean: list[float] | None = None  # labels are (number - mean) / std
    std: list[float] | None = None
    classes: list[str] | None = None
    elements: list[int] | None = None
    directed: bool = field(default=False, compare=False)  # checkpoints from before it was told hold none

    @classmethod
    def of(cls, data: Benchmark | OneGraph) -> Problem:
        names = ("targets", "mean", "std", "classes", "elements")
        listed: dict[str, Any] = {name: None if (v := getattr(data, name)) is None else list(v) for name in names}
        return cls(
            data.task, data.metric, data.num_outputs, data.in_channels, data.edge_channels, data.level,
            directed=data.directed, **listed,
        )  # fmt: skip

    def check_classes(self, name: str) -> None:
        """Refuse to learn one class: all models are right, always."""
        if self.task == "multiclass" and self.num_outputs < 2:
            raise ValueError(f"Expected at least two classes to learn in {name}, got one")

    def standardised(self, data: Benchmark, train: np.ndarray) -> Problem:
        """With mean and deviation of the training graphs' numbers, in which a run learns those of a file of one's own."""
        chosen = train
        if data.level == "node":
            of = np.repeat(np.arange(len(data)), [graph.num_nodes or 0 for graph in data.graphs])
            chosen = np.flatnonzero(np.isin(of, train))
        names = data.targets or [f"column {k} of y" for k in range(data.num_outputs)]
        mean, std = mean_and_std(data.name, names, data.labels[chosen], data.level)
        return replace(self, mean=mean.tolist(), std=std.tolist())

    @property
    def needs(self) -> tuple[Need, ...]:
        """What a file of graphs must say for a model of this problem."""
        features: tuple[Need, ...] = () if self.in_channels == [1] else ("features",)
        return (*features, "directions") if self.directed else features

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
