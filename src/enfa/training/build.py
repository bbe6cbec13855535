"""From settings to a dataset, a policy and a model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from torch import nn

from enfa.datasets import Benchmark, from_csv, from_npz, load
from enfa.datasets.known import dataset_file, is_table
from enfa.datasets.own import BadRow
from enfa.edits import Policy, Subsample
from enfa.edits.policies import policy_from
from enfa.nn.models.arguments import arguments
from enfa.nn.models.registry import MODELS
from enfa.training.models import build_model
from enfa.training.problem import Problem
from enfa.training.settings.config import Config

__all__ = ["make_model", "make_policy", "open_benchmark", "training_draw"]


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
