"""One run: a config, a fold and a seed, trained with Lightning."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch
import yaml
from torch import nn

from enfa.atomic import named
from enfa.datasets import Benchmark
from enfa.memory import keep_memory
from enfa.training.build import Problem, compile_for, open_benchmark
from enfa.training.checkpoint import check_resumable, check_same_model, check_same_split, check_weights, load, load_checkpoint
from enfa.training.disk import write_json, write_text
from enfa.training.finetune import fitted, start_from
from enfa.training.loop.graphed import on_gpu
from enfa.training.one_graph import compile_roots, labels_of_roots, open_one_graph
from enfa.training.results.done import has_stopped, record_of
from enfa.training.results.parts import Parts
from enfa.training.results.record import Record, hardware
from enfa.training.settings.claim import claimed
from enfa.training.settings.config import Config
from enfa.training.settings.folder import BEST, LAST, check_same_data, fingerprint, folder_of, started_by_another
from enfa.training.trained.members import one_model
from enfa.training.tried import LOOKED_AT, check_same_rows
from enfa.training.unread import tell_unlearnt, tell_unread, unlearnt_classes

if TYPE_CHECKING:
    from enfa.training.loop.data import Batches
    from enfa.training.loop.module import TrainingModule

__all__ = ["evaluate", "fit", "fit_few", "needs_lightning", "prepare"]


def needs_lightning() -> None:
    try:
        import torchmetrics  # noqa: F401

        import enfa.training.loop.lightning  # noqa: F401
    except ImportError as error:
        raise ValueError(f"Training needs Lightning and torchmetrics ({error}): pip install 'enfa[train]'") from error


@contextmanager
def _naming(folder: Path) -> Iterator[None]:
    """Errors of the system say where they struck, also those of loggers, which do not."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            raise named(error, folder) from error
        raise


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
    problem = Problem.of(data) if weights is None else fitted(Problem.of(data), weights)
    problem.check_classes(data.name)
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
            check_same_rows(config, module.model, [data.graphs[k] for k in split["train"][:LOOKED_AT]])
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
    problem = Problem.of(data) if weights is None else fitted(Problem.of(data), weights)
    problem.check_classes(data.name)
    module = TrainingModule(config, problem)
    module.parts = parts
    with parts.timed("compile"):
        compiled, about = compile_roots(config, data.graph, data.pairs, module.model, progress)
        if trained is None:
            check_same_rows(config, module.model, [data.graph])
    labels, split = labels_of_roots(data, about)
    return Prepared(module, Batches(config, compiled, split, labels), "valid")


def fit(
    config: Config,
    *,
    resume: bool = False,
    progress: bool = True,
    deadline: float | None = None,
    data: Benchmark | None = None,
    parts: Parts | None = None,
) -> Record | None:
    """Train, and return the run's record; None in processes that only helped.

    ``deadline`` (of ``time.monotonic``) ends the run at the end of the epoch in which it passes. An interrupted run loses the
    epoch it was in (see LastCheckpoint); one that had stopped by itself stays as it is. ``data`` as in ``prepare``. ``parts``
    is told what begins, and notes how long it takes.
    """
    with claimed(config, resume):
        return _fit(config, resume, progress, deadline, data, Parts() if parts is None else parts)


def _fit(
    config: Config, resume: bool, progress: bool, deadline: float | None, data: Benchmark | None, parts: Parts
) -> Record | None:
    folder = folder_of(config)
    last = folder / LAST
    seen = torch.cuda.device_count()
    if config.accelerator == "gpu" and seen < config.devices:
        raise ValueError(f"Expected GPUs for accelerator=gpu and devices={config.devices}, PyTorch sees {seen}")
    checkpoint = load_checkpoint(last) if resume else None
    if checkpoint is not None:
        check_resumable(last, checkpoint, config)
    stopped = checkpoint if checkpoint is not None and has_stopped(checkpoint, config) else None
    if stopped is not None and not started_by_another():
        done, there = len(stopped["enfa"]["curve"]), record_of(config)
        print(f"{folder} has stopped after {done} of {config.epochs} epochs, and nothing is left to train.")
        if there is not None and there.epochs == done:
            return there
    if not on_gpu(config):
        keep_memory()
    weights = None if config.init is None else load(last if resume else config.init)
    trained = None if checkpoint is None else Problem(**checkpoint["enfa"]["problem"])
    run = prepare(config, progress, weights, data, parts, trained)
    if not started_by_another():
        tell_unread(config, run.module.problem.edge_channels, "conv=", run.batches.compiled.program.steps)
        tell_unlearnt(config, run.unlearnt)
    if checkpoint is not None:
        check_same_model(last, checkpoint, config, run.module.problem)
        check_weights(last, checkpoint, run.module)
    elif config.init is not None:
        start_from(config.init, run.module.model, print if not started_by_another() else lambda _: None)
    from enfa.training.loop.trainer import quietly, trainer_of

    with quietly(), _naming(folder):
        trainer = trainer_of(config, run.module.problem.metric, folder, progress, deadline)
        if trainer.is_global_zero:
            folder.mkdir(parents=True, exist_ok=True)
            write_text(folder / "config.yaml", yaml.safe_dump(config.to_dict(), sort_keys=False))
        run.module.csv = folder / "metrics.csv"
        if stopped is None:
            with parts.timed("epochs"):
                trainer.fit(run.module, run.batches, ckpt_path=str(last) if resume else None, weights_only=True)
        else:  # Lightning would train an epoch before it asks whether to stop
            run.module.on_load_checkpoint(stopped)
        test, seconds = None, run.module.seconds if stopped is None else stopped["enfa"]["seconds"]
        if run.module.graphed and stopped is None:
            write_json(folder / "batches.json", {**run.batches.report(), **run.module.steps})
        if not run.validates_on_test:
            best, curve = str(folder / BEST), run.module.curve
            with parts.timed("test"):
                found = trainer.test(run.module, run.batches, ckpt_path=best, weights_only=True, verbose=False)
            test = float(found[0]["test/score"])
            run.module.curve = curve  # the best checkpoint brought its own, which ends there
    if not trainer.is_global_zero:
        return None
    late = deadline is not None and time.monotonic() > deadline and stopped is None
    record = Record.of(config, run.module, test, seconds, hardware(trainer.strategy.root_device), late, run.validated_on)
    write_json(folder / "result.json", record.to_dict())
    return record


def fit_few(config: Config, data: Benchmark) -> None:
    """Train on other data than the config's, without a record."""
    run = prepare(config, data=data, trained=Problem.of(data))  # few graphs may have no number for some target
    from enfa.training.loop.trainer import quietly, trainer_of

    with quietly():
        trainer = trainer_of(config, run.module.problem.metric, folder_of(config), False, None)
        trainer.fit(run.module, run.batches)
        if not run.validates_on_test:
            trainer.test(run.module, run.batches, verbose=False)


def evaluate(config: Config, checkpoint: str | Path | None = None, part: str = "test", progress: bool = True) -> float:
    """The score of a checkpoint (by default the run's best) on one part of the split."""
    path = folder_of(config) / BEST if checkpoint is None else one_model(checkpoint)
    found = load_checkpoint(path)
    before, now = found["enfa"].get("data"), fingerprint(config)
    of_same_name = found["enfa"]["config"]["dataset"] == config.dataset
    if of_same_name:
        check_same_data(Path(path), before, now, config)
    data = open_benchmark(config) if config.level == "graphs" else None
    if of_same_name or (now is not None and before == now):  # the same file may be named in two ways
        check_same_split(path, found, config, data is not None and data.splits is not None)
    trained = Problem(**found["enfa"]["problem"])
    run = prepare(config, progress, None if config.init is None else load(path), data, trained=trained)
    check_same_model(path, found, config, run.module.problem)
    check_weights(path, found, run.module)
    run.batches.split = {**run.batches.split, "test": run.batches.split[part]}
    from enfa.training.loop.trainer import quietly, tester_of

    with quietly():
        trainer = tester_of(config, progress)
        scores = trainer.test(run.module, run.batches, ckpt_path=str(path), weights_only=True, verbose=False)
    return float(scores[0]["test/score"])
