"""One run: a config, a fold and a seed, trained with Lightning."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import yaml

from enfa.atomic import named
from enfa.datasets import Benchmark
from enfa.memory import keep_memory
from enfa.training.build import open_benchmark
from enfa.training.checkpoint import load, load_checkpoint
from enfa.training.disk import write_json, write_text
from enfa.training.loop.graphed import on_gpu
from enfa.training.problem import Problem
from enfa.training.results.done import has_stopped, record_of
from enfa.training.results.parts import Parts
from enfa.training.results.record import Record, hardware
from enfa.training.settings.claim import claimed
from enfa.training.settings.config import Config
from enfa.training.settings.folder import BEST, LAST, check_same_data, fingerprint, folder_of, started_by_another
from enfa.training.start.finetune import start_from
from enfa.training.start.fits import check_resumable, check_same_model, check_same_split, check_weights
from enfa.training.start.prepare import across_devices, prepare
from enfa.training.start.unread import tell_unlearnt, tell_unread
from enfa.training.trained.members import one_model

__all__ = ["evaluate", "fit", "fit_few", "scored"]


@contextmanager
def _naming(folder: Path) -> Iterator[None]:
    """Errors of the system say where they struck, also those of loggers, which do not."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            raise named(error, folder) from error
        raise


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
    if config.devices > 1:
        run.module.model = across_devices(run.module.model)
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
    return scored(config, checkpoint, part, progress)[0]


def scored(
    config: Config, checkpoint: str | Path | None = None, part: str = "test", progress: bool = True
) -> tuple[float, bool]:
    """The same, and whether the checkpoint was chosen by its scores on that part though it is the one to test on."""
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
    return float(scores[0]["test/score"]), run.validates_on_test and part == "test" and Path(path).name != LAST
