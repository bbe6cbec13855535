"""From settings to a dataset, a policy, a model and a compiled dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from enfa.batch.dataset import CompiledDataset
from enfa.datasets import Benchmark, from_npz, load
from enfa.datasets.benchmark import Channels
from enfa.datasets.compact import compact_file, from_compact
from enfa.edits import Policy, Subsample
from enfa.edits.policies import policy_from
from enfa.nn import DSGNN, DSSGNN
from enfa.nn.bag import compile as compile_dataset
from enfa.nn.convs import CONVS
from enfa.nn.models.base import SubgraphGNN
from enfa.training.config import Config

__all__ = ["Problem", "compile_for", "make_model", "make_policy", "open_benchmark", "training_draw"]


@dataclass(frozen=True)
class Problem:
    """What a model must know of a dataset: all that a checkpoint needs to be used without it."""

    task: str
    metric: str
    num_outputs: int
    in_channels: Channels
    edge_channels: Channels | None

    @classmethod
    def of(cls, data: Benchmark) -> Problem:
        return cls(data.task, data.metric, data.num_outputs, data.in_channels, data.edge_channels)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def open_benchmark(config: Config) -> Benchmark:
    """The dataset: an ``.npz`` file, or a benchmark by name from ``root``."""
    if config.dataset.endswith(".npz"):
        path = Path(config.dataset)
        if not path.is_file():
            raise FileNotFoundError(f"There is no dataset file {path}")
        return from_npz(path, metric=config.metric, use_node_attr=config.use_node_attr)
    if config.metric is not None:
        raise ValueError(f"{config.dataset} has its official metric: the setting metric is for .npz files")
    if compact_file(config.dataset, config.root).is_file():
        return from_compact(config.dataset, config.root, use_node_attr=config.use_node_attr)
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


def make_model(config: Config, problem: Problem) -> SubgraphGNN:
    """The model, its weights drawn from ``config.seed``. Nothing else draws from the generator's state here."""
    _check_draw(config)
    policy = make_policy(config)
    edge_marks = len(policy.edge_marks[0])
    reads_edges = getattr(CONVS.get(config.conv), "reads_edges", False)
    options: dict[str, Any] = {
        "edge_channels": problem.edge_channels if reads_edges else None,
        "norm": config.norm,
        "dropout": config.dropout,
        "readout": config.readout,
        "bag": config.bag,
        "jk": config.jk,
        "residual": config.residual,
        "mark_channels": len(policy.marks[0]),
        "edge_mark_channels": edge_marks if reads_edges else 0,  # compiling says that the marks cannot be seen
        "share": config.share,
    }
    shape = (problem.in_channels, config.hidden_channels, problem.num_outputs, config.num_layers, config.conv)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        if config.model == "dss":
            model: SubgraphGNN = DSSGNN(*shape, config.context, **options)
        else:
            model = DSGNN(*shape, **options)
    return model.double() if config.precision == "64" else model


def compile_for(
    config: Config, graphs: Sequence[Data], model: SubgraphGNN, progress: bool = False
) -> CompiledDataset:
    """The whole bags, also where epochs draw from them. Rows of DSS-GNN depend on the draw, so it is planned batch by batch."""
    draw = training_draw(config)
    return compile_dataset(
        graphs, make_policy(config) if draw is None else draw.policy, model, config.cache, progress,
        kind=config.plan, threads=config.threads, ahead=draw is None or not isinstance(model, DSSGNN),
    )  # fmt: skip
