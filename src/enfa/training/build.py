"""From settings to a dataset, a policy, a model and a compiled dataset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import nn
from torch_geometric.data import Data

from enfa.batch.shards.dataset import Compiled
from enfa.batch.shards.folder import Folder
from enfa.batch.shards.manifest import MANIFEST, Manifest
from enfa.datasets import Benchmark, from_csv, from_npz, load
from enfa.datasets.benchmark import Channels
from enfa.datasets.known import dataset_file, is_table
from enfa.datasets.npz.read import Need
from enfa.datasets.one_graph import OneGraph
from enfa.datasets.own import BadRow
from enfa.datasets.scale import mean_and_std
from enfa.draws import drawn_late
from enfa.edits import Policy, Subsample
from enfa.edits.policies import policy_from
from enfa.nn.bag import ShardedDataset, trace
from enfa.nn.bag import compile as compile_dataset
from enfa.nn.models.arguments import arguments
from enfa.nn.models.registry import MODELS
from enfa.training.models import build_model
from enfa.training.settings.config import Config

__all__ = ["Problem", "compile_for", "make_model", "make_policy", "open_benchmark", "training_draw"]


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


def open_benchmark(config: Config, report: Callable[[list[BadRow], int], None] | None = None) -> Benchmark:
    """The dataset: an ``.npz`` or ``.csv`` file, or a benchmark by name from ``root``; with ``target``, one of its targets.

    ``report`` is called with the rows of a ``.csv`` file that are left out, and how many more have no label.
    """
    data = _open(config, report)
    data = data if config.target is None else data.only(config.target)
    if config.dataset.endswith(".npz"):
        _check_labelled(data)
    return data


def _check_labelled(data: Benchmark) -> None:
    """A target that no graph has would be learnt from nothing, and predicted all the same."""
    if data.labels.ndim < 2:
        return
    empty = np.isnan(data.labels).all(0)
    if empty.any():
        names = data.targets or [f"column {k} of y" for k in range(len(empty))]
        lacking = ", ".join(name for name, none in zip(names, empty) if none)
        raise ValueError(f"{data.name}: Expected labels of every target, got none of {lacking}: leave it out, or name a target")


def _open(config: Config, report: Callable[[list[BadRow], int], None] | None) -> Benchmark:
    if is_table(config.dataset):
        if config.use_node_attr:
            raise ValueError(f"Expected no use_node_attr for a table of molecules, got {config.dataset}")
        targets = config.targets or (None if config.target is None else [config.target])
        return from_csv(
            config.dataset, smiles=config.smiles, targets=targets, task=config.task, split=config.split or "random",
            seed=config.fold_seed, metric=config.metric, skip_bad=config.skip_bad, report=report,
        )  # fmt: skip
    if config.dataset.endswith(".npz"):
        return from_npz(dataset_file(config.dataset), metric=config.metric, use_node_attr=config.use_node_attr)
    if config.metric is not None:
        raise ValueError(f"{config.dataset} has its official metric: the setting metric is for .npz and .csv files")
    return load(config.dataset, config.root, use_node_attr=config.use_node_attr)


def make_policy(config: Config) -> Policy:
    return policy_from(config.policy, **config.policy_params)


def training_draw(config: Config) -> Subsample | None:
    """What to draw of the training graphs' bags in each epoch; None for the whole bags."""
    policy = make_policy(config)
    return policy if isinstance(policy, Subsample) else None


def _check_draw(config: Config) -> None:
    """Whole bags are evaluated, so a model that was trained on parts of them must not depend on how many there are."""
    sums = {"bag": config.bag == "sum", "context": config.model == "dss" and config.context != "dss"}
    for name, adds_up in sums.items():
        if adds_up and training_draw(config) is not None:
            instead = "mean" if name == "bag" else "dss"
            raise ValueError(
                f"The policy subsample trains on parts of the bags and evaluates whole ones, but {name}="
                f"{getattr(config, name)} adds up over a bag: use {name}={instead}, or another policy"
            )


def make_model(config: Config, problem: Problem) -> nn.Module:
    """The model of a config for some data."""
    _check_draw(config)
    _check_level(config, problem)
    policy = make_policy(config)
    given = {
        "in_channels": problem.in_channels, "out_channels": problem.num_outputs, "edge_channels": problem.edge_channels,
        "mark_channels": len(policy.marks[0]), "edge_mark_channels": len(policy.edge_marks[0]),
    }  # fmt: skip
    return build_model(config, given)


def _check_level(config: Config, problem: Problem) -> None:
    """Outputs must be of what has labels."""
    if problem.level in ("nodes", "links"):
        if "readout" not in arguments(MODELS[config.model]):
            raise ValueError(f"Expected a model with an argument readout for labels of {problem.level}, got {config.model}")
        if config.readout != "root":
            raise ValueError(f"Expected readout root, because labels are those of {problem.level}, got {config.readout!r}")
        return
    if config.readout is None:  # a model of the user's own has no such argument: the shape of its outputs tells
        return
    known = "root or node" if problem.level == "node" else "sum, mean or max"
    if (config.readout in ("root", "node")) != (problem.level == "node"):
        raise ValueError(f"Expected readout {known}, because labels are those of {problem.level}s, got {config.readout!r}")


def compile_for(
    config: Config, graphs: Sequence[Data], model: nn.Module, progress: bool = False, level: str = "graph", **sharing: Any
) -> Compiled:
    """The whole bags, also where epochs draw from them. Rows that read several subgraphs depend on the draw: planned batch by
    batch. ``sharing``: how to compile into ``config.shards``, as :func:`enfa.compile` takes it."""
    with drawn_late(config.seed):
        return _compiled(config, graphs, model, progress, level, sharing)


def _compiled(
    config: Config, graphs: Sequence[Data], model: nn.Module, progress: bool, level: str, sharing: dict[str, Any]
) -> Compiled:
    draw, policy, apart = training_draw(config), make_policy(config), True
    if draw is not None:
        policy = draw.policy
        steps = trace(model, graphs, policy).steps
        apart = not any(step.kind == "nodes" or step.along == "subgraphs" for step in steps)
        if not apart and config.model not in ("ds", "dss"):
            raise ValueError(
                f"Expected model=ds or model=dss with the policy subsample, which trains on parts of the bags and evaluates "
                f"whole ones, got {config.model}, whose rows read all subgraphs of a bag"
            )
    if config.shards is not None:
        return _in_shards(config, graphs, model, policy, progress, level, apart, sharing)
    labels = None
    if level == "node":  # which graphs cannot have as their own
        labels, graphs = torch.cat([graph.y for graph in graphs]), [copy(graph) for graph in graphs]
        for graph in graphs:
            del graph.y
    compiled = compile_dataset(
        graphs, policy, model, config.cache, progress, kind=config.plan, threads=config.threads, ahead=apart
    )
    compiled.node_y = labels
    return compiled


def _in_shards(
    config: Config, graphs: Sequence[Data], model: nn.Module, policy: Policy, progress: bool, level: str, apart: bool,
    sharing: dict[str, Any],
) -> ShardedDataset:  # fmt: skip
    """What is not in the folder so far is compiled into it; whatever is there for something else is refused."""
    if level == "node":
        raise ValueError(f"Expected labels of graphs with shards={config.shards!r}, got labels of nodes: use cache")
    if not apart:
        raise ValueError(
            f"Expected model=ds with the policy subsample and shards={config.shards!r}, got {config.model}, whose rows read "
            f"several subgraphs: use no shards"
        )
    assert config.shards is not None
    folder = Folder(config.shards)
    given = {name: value for name, value in sharing.items() if value is not None}
    if MANIFEST in folder.names() and not given.keys() & {"shards", "shard_size"}:  # shared out as it is there
        known = Manifest.read(folder)
        given |= {"shards": len(known.shards)} if known.size is None else {"shard_size": known.size}
    compile_dataset(graphs, policy, model, out=config.shards, progress=progress, kind=config.plan, **given)
    return ShardedDataset.open(config.shards, config.shard_memory)
