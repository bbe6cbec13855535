"""From flat arrays to a benchmark: what the labels are, and how many categories the columns have."""

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from enfa.datasets.benchmark import REGRESSION, Benchmark, Channels, Level, Metric, Task
from enfa.datasets.flat import FlatGraphs
from enfa.datasets.unopened import Arrays, Unopened

__all__ = ["METRICS", "assemble", "channels_of", "labels_from"]

METRICS: dict[Task, Metric] = {"multiclass": "accuracy", "binary": "rocauc", "regression": "mae"}


def assemble(
    name: str,
    flat: FlatGraphs,
    y: np.ndarray,
    *,
    metric: Metric | None = None,
    num_outputs: int | None = None,
    in_channels: Channels | Sequence[int] | None = None,
    edge_channels: Channels | Sequence[int] | None = None,
    splits: Mapping[str, np.ndarray] | None = None,
    num_folds: int = 10,
    level: Level = "graph",
    targets: Sequence[str] | None = None,
    mean: np.ndarray | None = None,
    std: np.ndarray | None = None,
    refit: bool = False,
) -> Benchmark:
    """A benchmark from checked arrays; what is not given is read off the data.

    ``y`` of shape ``[G]`` is one class per graph. Without ``num_outputs`` the classes are the distinct
    values, numbered from 0 in their order, and called what they are in ``y``; with it, values must be 0 to
    ``num_outputs - 1``. ``y`` of shape ``[G, T]`` is T yes/no tasks. The metric is accuracy for classes, ROC-AUC for tasks.

    Floats of shape ``[G]`` that are not all whole, and whatever a metric of regression is given for, are numbers to predict,
    by default with the mean absolute error; with ``level="node"``, ``y`` has a row for each node. ``mean`` and ``std`` make
    ``(y - mean) / std`` of them.
    """
    count, whose = (len(flat.num_nodes), "graphs") if level == "graph" else (len(flat.x), "nodes")
    if len(y) != count:
        raise ValueError(f"{flat.source}: {count} {whose} have {len(y)} labels; is a file cut short?")
    task, labels, outputs = labels_from(flat.source, y, num_outputs, metric in REGRESSION or level == "node")
    if mean is not None or std is not None:
        mean, std = (np.full(outputs, d) if v is None else v for v, d in ((mean, 0.0), (std, 1.0)))
        labels = ((y.reshape(labels.shape) - mean) / std).astype(np.float32)
    given = torch.from_numpy(labels)
    called = None
    if task == "multiclass" and num_outputs is None:
        called = tuple(str(value) for value in np.unique(y).tolist())
        if outputs == 1:
            warnings.warn(
                f"{flat.source}: all labels are of one class, {called[0]}, so there is nothing to learn: give num_outputs=N, "
                f"and classes from 0 to N - 1, where other data have more",
                stacklevel=3,
            )
        called = None if called == tuple(map(str, range(outputs))) else called
    edge_kinds = None
    if flat.edge_attr is not None:
        edge_kinds = channels_of(flat.source, "edge_attr", flat.edge_attr, edge_channels)
    return Benchmark(
        name=name,
        graphs=flat.graphs(given, level) if level == "node" else Unopened((), Arrays(flat, given)),
        metric=metric or METRICS[task],
        task=task,
        num_outputs=outputs,
        in_channels=channels_of(flat.source, "x", flat.x, in_channels),
        edge_channels=edge_kinds,
        splits=splits,
        num_folds=num_folds,
        level=level,
        targets=None if targets is None else tuple(targets),
        mean=None if mean is None else tuple(mean.tolist()),
        std=None if std is None else tuple(std.tolist()),
        classes=called,
        refit=refit,
    )


def labels_from(source: str, y: np.ndarray, num_outputs: int | None, numbers: bool) -> tuple[Task, np.ndarray, int]:
    """What they are, the labels themselves, and how many outputs a model needs; ``numbers``: to predict, not classes."""
    if y.dtype.kind == "f" and y.ndim == 1 and not numbers:
        if (np.isnan(y) | (np.floor(y) == y)).all():
            raise ValueError(
                f"{source}: expected classes to be integers, got {y.dtype}; for numbers to predict, say metric='mae'"
            )
        numbers = True
    if y.dtype.kind in "iubf" and ((y.ndim == 2 and y.shape[1]) or (numbers and y.ndim == 1)):
        y = y[:, None] if y.ndim == 1 else y
        if num_outputs not in (None, y.shape[1]):
            raise ValueError(f"{source}: expected y to have {num_outputs} columns, got {y.shape[1]}")
        return "regression" if numbers else "binary", y.astype(np.float32), y.shape[1]
    if y.ndim != 1 or y.dtype.kind not in "iub":
        raise ValueError(
            f"{source}: expected y to be integers of shape [G] (classes), floats of shape [G] (numbers to predict) or numbers "
            f"of shape [G, T] (yes/no tasks, or numbers to predict where the metric says so), got {y.dtype} of shape {y.shape}"
        )
    if num_outputs is not None:
        return "multiclass", y.astype(np.int64), num_outputs
    classes, codes = np.unique(y, return_inverse=True)
    return "multiclass", codes.astype(np.int64), len(classes)


def channels_of(source: str, what: str, values: np.ndarray, given: Channels | Sequence[int] | None) -> Channels:
    columns = values.shape[1]
    if values.dtype.kind == "f":
        if given not in (None, columns):
            raise ValueError(f"{source}: {what} has {columns} float columns, got channels {given}")
        return columns
    if len(values) and values.min() < 0:
        raise ValueError(f"{source}: expected categories in {what} to count from 0, got {values.min()}")
    highest = values.max(axis=0) if len(values) else np.full(columns, -1)
    if given is None:
        return (highest + 1).tolist()
    if isinstance(given, int) or len(given) != columns:
        raise ValueError(f"{source}: expected the categories of each of {columns} columns, got {given}")
    for column, (top, count) in enumerate(zip(highest.tolist(), given)):
        if top >= count:
            raise ValueError(f"{source}: column {column} of {what} has {count} categories, got number {top}")
    return list(given)
