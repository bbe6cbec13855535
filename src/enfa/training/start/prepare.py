"""What a run has before its first step: the data with their split, the model, the batches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from enfa.datasets import Benchmark
from enfa.datasets.one_graph import OneGraph
from enfa.nn.ops.norm import CountedBatchNorm
from enfa.training.build import open_benchmark
from enfa.training.compiling import compile_for
from enfa.training.one_graph import compile_roots, labels_of_roots, open_one_graph
from enfa.training.problem import Problem
from enfa.training.results.parts import Parts
from enfa.training.settings.config import Config
from enfa.training.start.finetune import fitted
from enfa.training.start.probabilities import tell_probabilities
from enfa.training.start.tried import LOOKED_AT, check_same_rows
from enfa.training.start.unread import unlearnt_classes

if TYPE_CHECKING:
    from enfa.training.loop.data import Batches
    from enfa.training.loop.module import TrainingModule

__all__ = ["Prepared", "across_devices", "needs_lightning", "prepare"]


def needs_lightning() -> None:
    try:
        import torchmetrics  # noqa: F401

        import enfa.training.loop.lightning  # noqa: F401
    except ImportError as error:
        raise ValueError(f"Training needs Lightning and torchmetrics ({error}): pip install 'enfa[train]'") from error


@dataclass
class Prepared:
    """What a run needs before its first step; all errors in a config show up while it is made."""

    module: TrainingModule
    batches: Batches
    validated_on: str  # as a record says it
    unlearnt: list[str] = field(default_factory=list)  # classes

    @property
    def validates_on_test(self) -> bool:
        return self.validated_on == "test fold"


def prepare(
    config: Config,
    progress: bool = False,
    weights: nn.Module | None = None,
    data: Benchmark | None = None,
    parts: Parts | None = None,
    trained: Problem | None = None,
) -> Prepared:
    """``weights``: the model whose weights are to fit in, which may know of more categories than the data have.

    ``data`` is the config's dataset, where it has been read already. ``trained``: what a checkpoint says that is to be gone on
    with, or tested, whose mean and deviation of numbers are kept.
    """
    parts = Parts() if parts is None else parts
    with parts.timed("import"):
        needs_lightning()
        from enfa.training.loop.data import Batches
        from enfa.training.loop.module import TrainingModule

    if config.threads is not None:
        torch.set_num_threads(config.threads)
    if config.level != "graphs":
        return _prepare_roots(config, progress, weights, parts, trained)
    with parts.timed("read"):
        data = open_benchmark(config) if data is None else data
    split = data.split(config.fold, config.fold_seed, validation=config.validation)
    for part, graphs in split.items():
        if not len(graphs):
            raise ValueError(f"{data.name}: the split {part!r} of fold {config.fold} is empty")
    problem = _problem(data, weights)
    scales = config.dataset.endswith(".npz") and problem.task == "regression"  # a CSV file's are standardised as they are read
    if scales and trained is not None:
        problem = replace(problem, mean=trained.mean, std=trained.std)
    elif scales:
        problem = problem.standardised(data, split["train"])
    module = TrainingModule(config, problem, scales)
    module.parts = parts
    with parts.timed("compile"):
        compiled = compile_for(config, data.graphs, module.model, progress, data.level)
        if trained is None:
            some = [data.graphs[k] for k in split["train"][:LOOKED_AT]]
            check_same_rows(config, module.model, some)
            tell_probabilities(config, module.model, problem, some)
    validated_on = f"{config.validation} fold" if data.splits is None else "valid"
    return Prepared(module, Batches(config, compiled, split), validated_on, unlearnt_classes(data, split["train"]))


def _prepare_roots(
    config: Config, progress: bool, weights: nn.Module | None, parts: Parts, trained: Problem | None
) -> Prepared:
    """For nodes or links of one graph: the split is one of subgraphs."""
    from enfa.training.loop.data import Batches
    from enfa.training.loop.module import TrainingModule

    with parts.timed("read"):
        data = open_one_graph(config)
    problem = _problem(data, weights)
    module = TrainingModule(config, problem)
    module.parts = parts
    with parts.timed("compile"):
        compiled, about = compile_roots(config, data.graph, data.pairs, module.model, progress)
        if trained is None:
            check_same_rows(config, module.model, [data.graph])
            tell_probabilities(config, module.model, problem, [data.graph])
    labels, split = labels_of_roots(data, about)
    return Prepared(module, Batches(config, compiled, split, labels), "valid")


def across_devices(model: nn.Module) -> nn.Module:
    """Norms of a model of the user's own take the statistics of all processes, as those of the package do. Lazy ones have to
    have seen data before."""
    model = CountedBatchNorm.convert(model)
    for name, part in model.named_modules():
        if isinstance(part, _BatchNorm) and not isinstance(part, CountedBatchNorm):
            raise ValueError(
                f"Expected torch.nn.BatchNorm1d of a model for several devices, which takes the statistics of all of them, got "
                f"{type(part).__name__} ({name})"
            )
    return model


def _problem(data: Benchmark | OneGraph, weights: nn.Module | None) -> Problem:
    problem = Problem.of(data) if weights is None else fitted(Problem.of(data), weights)
    problem.check_classes(data.name)
    return problem
