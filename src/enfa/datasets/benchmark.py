"""What a dataset is to the rest of the package: graphs, and how a model on them is scored."""

from collections.abc import Mapping, MutableSequence, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
import torch
from torch_geometric.data import Data

from enfa.datasets.folds import stratified_folds
from enfa.datasets.unopened import Unopened

__all__ = ["REGRESSION", "Benchmark", "Channels", "Level", "Metric", "Task"]

Metric = Literal["accuracy", "rocauc", "ap", "mae", "mse", "r2"]
Task = Literal["multiclass", "binary", "regression"]
Level = Literal["graph", "node"]
REGRESSION = ("mae", "mse", "r2")  # the metrics of targets that are numbers
Channels = int | list[int]
PARTS = ("train", "valid", "test")


@dataclass(frozen=True, eq=False)
class Benchmark:
    """Graphs with labels, the split of them, and the metric.

    Each graph is a ``Data`` with ``x [n, C]``, ``edge_index [2, m]`` (an undirected edge stands in both
    directions), ``edge_attr [m, D]`` or ``None``, and ``y``:

    - task ``"multiclass"``: ``y`` is int64 ``[1]``, one of ``num_outputs`` classes;
    - task ``"binary"``: ``y`` is float32 ``[1, num_outputs]``, each entry a yes/no task of its own: 1, 0,
      or NaN where it was not measured and must count neither in the loss nor in the metric;
    - task ``"regression"``: ``y`` is float32 ``[1, num_outputs]``, numbers, or NaN likewise. With ``level="node"`` they are
      the nodes' own, ``[n, num_outputs]``.

    ``targets`` names the columns of ``y``. Where the benchmark asks for it, they are ``(number - mean) / std``, and so are the
    metric's units: ``mean`` and ``std`` hold a number for each column.

    ``in_channels`` is the number of float columns of ``x``; or, if ``x`` is int64 and categorical, the list
    of how many categories each column has (what an embedding table needs). ``edge_channels`` says the same of
    ``edge_attr``.

    ``splits`` is the official split, three int64 arrays named train, valid and test; without one there are
    ``num_folds`` stratified folds (``num_folds`` is 1 with one). ``split`` gives the arrays in either case.

    The tensors of the graphs are views of a few large ones: ``graph.clone()`` copies one graph, but
    ``copy.deepcopy`` and ``torch.save`` would take the whole dataset along. The list of them is made when it is first looked
    into: give ``list(data.graphs)`` to a loader of PyG with workers, each of which would make one of its own.
    """

    name: str
    graphs: MutableSequence[Data] = field(repr=False)
    metric: Metric
    task: Task
    num_outputs: int
    in_channels: Channels
    edge_channels: Channels | None = None
    splits: Mapping[str, np.ndarray] | None = field(default=None, repr=False)
    num_folds: int = 10
    level: Level = field(default="graph", repr=False)
    targets: tuple[str, ...] | None = field(default=None, repr=False)
    mean: tuple[float, ...] | None = field(default=None, repr=False)
    std: tuple[float, ...] | None = field(default=None, repr=False)
    refit: bool = field(default=False, repr=False)
    """Whether all parts of the split are the same graphs: what is tested is whether a model can fit them at all."""
    classes: tuple[str, ...] | None = field(default=None, repr=False)
    """What the classes of a multiclass task are called."""
    elements: tuple[int, ...] | None = field(default=None, repr=False)
    """Of molecules: the atomic numbers that there are in those to train on (119: none of the periodic table)."""
    directed: bool = field(default=False, repr=False)
    """Whether some edge stands in one direction only."""
    labels: np.ndarray = field(init=False, repr=False)
    """All labels at once: int64 ``[G]`` (multiclass) or float32 ``[G, num_outputs]``; ``[N, num_outputs]`` for nodes."""

    def __post_init__(self) -> None:
        for what, value, allowed in (
            ("metric", self.metric, Metric), ("task", self.task, Task), ("level", self.level, Level),
        ):  # fmt: skip
            if value not in get_args(allowed):
                raise ValueError(f"{self.name}: expected {what} to be in {get_args(allowed)}, got {value!r}")
        if self.task == "multiclass" and self.metric != "accuracy":
            raise ValueError(f"{self.name}: the metric of a multiclass task is accuracy, got {self.metric!r}")
        if (self.task == "regression") != (self.metric in REGRESSION):
            known = REGRESSION if self.task == "regression" else ("accuracy", "rocauc", "ap")
            raise ValueError(f"{self.name}: the metric of a {self.task} task is one of {known}, got {self.metric!r}")
        if self.level == "node" and self.task != "regression":
            raise ValueError(f"{self.name}: labels of nodes are those of a regression task, got {self.task!r}")
        columns = 1 if self.task == "multiclass" else self.num_outputs
        for what, values, count in (
            ("targets", self.targets, columns), ("mean", self.mean, columns), ("std", self.std, columns),
            ("classes", self.classes, self.num_outputs),
        ):  # fmt: skip
            if values is not None and len(values) != count:
                raise ValueError(f"{self.name}: expected {what} to have {count} entries, got {len(values)}")
        if not self.graphs:
            raise ValueError(f"{self.name}: expected at least one graph, got none")
        object.__setattr__(self, "labels", self._checked_labels())
        if self.splits is not None:
            object.__setattr__(self, "splits", self._checked_splits(self.splits))
            object.__setattr__(self, "num_folds", 1)

    def __len__(self) -> int:
        return len(self.graphs)

    @property
    def compilable(self) -> Sequence[Data]:
        """The graphs as :func:`enfa.compile` takes them: without labels of nodes, which are then its ``node_y``."""
        if self.level == "graph":
            return self.graphs
        graphs = [copy(graph) for graph in self.graphs]
        for graph in graphs:
            del graph.y
        return graphs

    def only(self, target: str) -> "Benchmark":
        """The same with one column of ``y``, by its name in ``targets``."""
        if target not in (self.targets or ()):
            known = ", ".join(self.targets or ()) or "(it names none)"
            raise ValueError(f"{self.name}: expected one of the targets {known}, got {target!r}")
        if self.task == "multiclass":
            return self  # which has one
        k = (self.targets or ()).index(target)
        graphs = [copy(graph) for graph in self.graphs]
        for graph in graphs:
            graph.y = graph.y[:, k : k + 1]
        mean, std = (None if v is None else v[k : k + 1] for v in (self.mean, self.std))
        return replace(self, graphs=graphs, num_outputs=1, targets=(target,), mean=mean, std=std)

    def split(
        self, fold: int = 0, seed: int = 0, *, validation: Literal["test", "next"] | None = "test"
    ) -> dict[str, np.ndarray]:
        """Positions in ``graphs`` to train, validate and test on.

        With an official split this is it, whatever ``validation`` is, and only fold 0 exists. With folds,
        ``validation="test"`` makes the test fold the validation fold as well: GIN's and ESAN's practice, which reports the
        best epoch of the mean validation curve. ``validation="next"`` holds out the following fold instead, so that the test
        fold chooses nothing.
        """
        if validation not in ("test", "next") and not (validation is None and self.splits is not None):
            raise ValueError(f"Expected validation to be 'test' or 'next', got {validation!r}")
        folds = self.num_folds
        if not 0 <= fold < folds:
            raise ValueError(f"{self.name} has folds 0 to {folds - 1}, got fold {fold}")
        if self.splits is not None:
            return {part: self.splits[part].copy() for part in PARTS}
        if validation == "next" and folds < 3:
            raise ValueError(f"{self.name}: validation='next' needs at least 3 folds, got {folds}")
        fold_of = stratified_folds(self._classes(), folds, seed)
        held_out = fold if validation == "test" else (fold + 1) % folds
        return {
            "train": np.flatnonzero((fold_of != fold) & (fold_of != held_out)),
            "valid": np.flatnonzero(fold_of == held_out),
            "test": np.flatnonzero(fold_of == fold),
        }

    def _classes(self) -> np.ndarray:
        """What folds are stratified by: the class; with several tasks, and for numbers, nothing."""
        if self.labels.ndim == 1:
            return self.labels
        if self.num_outputs > 1 or self.task == "regression":
            return np.zeros(len(self), dtype=np.int64)
        return np.nan_to_num(self.labels[:, 0], nan=2.0).astype(np.int64)

    def _labels(self) -> np.ndarray:
        graphs = self.graphs
        arrays = graphs.unopened_arrays if isinstance(graphs, Unopened) and self.level == "graph" else None
        if arrays is not None and arrays.y.shape[1:] == (() if self.task == "multiclass" else (self.num_outputs,)):
            return arrays.y.numpy().copy()
        for position, graph in enumerate(self.graphs):
            rows = 1 if self.level == "graph" else graph.num_nodes
            want = (rows,) if self.task == "multiclass" else (rows, self.num_outputs)
            if graph.y is None or graph.y.shape != want:
                got = None if graph.y is None else tuple(graph.y.shape)
                raise ValueError(f"{self.name}: expected graph {position} to have y of shape {want}, got {got}")
        return torch.cat([graph.y for graph in self.graphs]).numpy()

    def _checked_labels(self) -> np.ndarray:
        labels, hint = self._labels(), ""
        if self.task == "multiclass":
            wrong = (labels < 0) | (labels >= self.num_outputs)
            allowed = f"a class from 0 to {self.num_outputs - 1}"
        elif self.task == "regression":
            wrong = np.isinf(labels).any(axis=1)
            allowed = "finite numbers or NaN (not measured)"
        else:
            wrong = ~(np.isnan(labels) | (labels == 0) | (labels == 1)).all(axis=1)
            allowed = "0, 1 or NaN (not measured)"
            hint = "; for numbers to predict, give metric='mae', 'mse' or 'r2'"
        if wrong.any():
            position = int(np.argmax(wrong))
            got = labels[position].tolist()
            if self.level == "node":
                position = int(np.searchsorted(np.cumsum([g.num_nodes for g in self.graphs]), position, side="right"))
            raise ValueError(f"{self.name}: expected graph {position} to have {allowed} as label, got {got}{hint}")
        return labels

    def _checked_splits(self, splits: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        if set(splits) != set(PARTS):
            raise ValueError(f"{self.name}: expected the splits {PARTS}, got {tuple(splits)}")
        for part in PARTS:
            if (kind := np.asarray(splits[part]).dtype).kind not in "iu" and np.size(splits[part]):
                raise ValueError(f"{self.name}: expected the split {part!r} to hold positions of graphs, integers, got {kind}")
        checked = {part: np.asarray(splits[part], dtype=np.int64).reshape(-1) for part in PARTS}
        for part, index in checked.items():
            if not len(index):
                raise ValueError(f"{self.name}: the split {part!r} is empty")
            if index.min() < 0 or index.max() >= len(self):
                raise ValueError(
                    f"{self.name}: expected the split {part!r} to hold positions from 0 to {len(self) - 1}, "
                    f"got {index.min()} to {index.max()}"
                )
            if part != "train" and not self.refit and np.isin(index, checked["train"]).any():
                raise ValueError(f"{self.name}: the splits 'train' and {part!r} have graphs in common")
        return checked
