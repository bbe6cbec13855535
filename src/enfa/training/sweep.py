"""Many runs: configs x folds x seeds, several at a time, none twice."""

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from enfa.graphs.numbers import how_many
from enfa.own_code import place
from enfa.training.attempt import attempt
from enfa.training.build import open_benchmark
from enfa.training.loop.graphed import workers
from enfa.training.metrics import lower_is_better
from enfa.training.one_graph import open_one_graph
from enfa.training.results.collect import Results
from enfa.training.results.record import Record
from enfa.training.settings.code import tell_changed_code
from enfa.training.settings.config import Config
from enfa.training.settings.folder import check_same_data, fingerprint
from enfa.training.start.prepare import needs_lightning

__all__ = ["Job", "numbers", "run_sweep"]


def numbers(text: str) -> list[int]:
    """
    >>> numbers("0-3,7")
    [0, 1, 2, 3, 7]
    """
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and (not last.isdigit() or int(last) < int(first))):
            raise ValueError(f"Expected numbers such as 0-9 or 0,2,5, got {text!r}")
        found += range(int(first), int(last or first) + 1)
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Job:
    config: Config  # with its fold and seed
    results: Results

    def __str__(self) -> str:
        return f"{self.config.name} fold {self.config.fold} seed {self.config.seed}"


def plan_jobs(
    configs: Sequence[Config], folds: Sequence[int] | None, seeds: Sequence[int], folder: Path
) -> tuple[list[Job], list[Results]]:
    """The runs that are not done yet (``folds=None``: all that the dataset has), and the results of every config."""
    names = [config.name for config in configs]
    if len(set(names)) < len(names):
        raise ValueError(f"Expected configs with different names, got {', '.join(names)}")
    counts: dict[tuple[str, str, str], int] = {}
    jobs, results = [], []
    for config in configs:
        if config.devices > 1:
            raise ValueError(f"{config.name}: a sweep runs each model on one device, got devices={config.devices}")
        of = Results.open(folder, config)
        data = fingerprint(config) if of.records else None
        for record in of.records:
            check_same_data(of.path, record.data, data, config)
            tell_changed_code(of.path, record.code, config)
        results.append(of)
        key = config.dataset, config.root, config.level
        if key not in counts:
            opened = open_benchmark(config) if config.level == "graphs" else open_one_graph(config)
            counts[key] = opened.num_folds
        chosen = range(counts[key]) if folds is None else folds
        for seed in seeds:
            for fold in chosen:
                if not 0 <= fold < counts[key]:
                    raise ValueError(f"{config.dataset} has folds 0 to {counts[key] - 1}, got fold {fold}")
                if not of.has(fold, seed):
                    _check_units(of)
                    jobs.append(Job(replace(config, fold=fold, seed=seed), of))
    return jobs, results


def _check_units(of: Results) -> None:
    """Refuse to put errors in deviations beside those in other units, from before numbers of .npz files were standardised."""
    own = of.config.dataset.endswith(".npz") and of.config.level == "graphs"
    if own and any(lower_is_better(r.metric) and r.std is None for r in of.records):
        raise ValueError(
            f"{of.path} holds runs of a version that standardised no numbers of .npz files, and runs of this one would have "
            f"scores in other units: set name=... to keep both"
        )


def _processes(count: int) -> ProcessPoolExecutor:
    """Spawned, because this one may have used CUDA. Left to themselves, they would spawn, too, what they start: then every
    worker of their loaders imports everything anew."""
    method = multiprocessing.get_start_method(allow_none=True)  # asking otherwise would choose one, for good
    return ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _begin, (method,))


def _begin(method: str | None) -> None:
    multiprocessing.set_start_method(method, force=True)


def sweep(
    jobs: Sequence[Job],
    at_once: int,
    deadline: float | None,
    report: Callable[[Job, Record | str | BaseException], None],
    progress: bool = False,
) -> None:
    """Run all jobs, ``at_once`` of them in processes of one thread each, and file each result as soon as it is there.

    ``report`` is called with every job and its record, or the error that ended it, or why it was left alone.
    """

    def file(job: Job, found: dict[str, Any] | str) -> None:
        if isinstance(found, str):
            report(job, found)
            return
        record = Record.from_dict(found)
        job.results.add(record)
        report(job, record)

    if at_once == 1:
        for job in jobs:
            try:
                found = attempt(job.config.to_dict(), job.results.path.parent, deadline, progress)
            except Exception as failure:  # the others run, as they do where each has a process
                report(job, failure)
            else:
                file(job, found)
        return
    # read by a process when it loads its libraries; more threads than one would only get in each other's way
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    with _processes(at_once) as pool:
        waiting: dict[Future[dict[str, Any] | str], Job] = {}
        for job in jobs:
            config = job.config if job.config.threads is not None else replace(job.config, threads=1)
            if config.num_workers is None:  # they share the cores
                config = replace(config, num_workers=workers(config) // at_once)
            waiting[pool.submit(attempt, config.to_dict(), job.results.path.parent, deadline)] = job
        try:
            while waiting:
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    job, error = waiting.pop(future), future.exception()
                    if error is not None:
                        report(job, error)
                    else:
                        file(job, future.result())
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def run_sweep(
    configs: Sequence[Config],
    folds: Sequence[int] | None,
    seeds: Sequence[int],
    at_once: int,
    folder: Path,
    minutes: float | None,
    say: Callable[[str], None],
    progress: bool = False,
) -> tuple[list[Results], int]:
    """Do what is left of a sweep, with a line for every run. Returns the results, and how many runs failed."""
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    needs_lightning()
    jobs, results = plan_jobs(configs, folds, seeds, folder)
    say(f"{how_many(len(jobs), 'run')} to do, {sum(len(of.records) for of in results)} on file")
    failed = 0

    def report(job: Job, found: Record | str | BaseException) -> None:
        nonlocal failed
        if isinstance(found, BaseException):
            failed += 1
            line, where = " ".join(str(found).split()) or type(found).__name__, place(found)
            line = f"failed: {where}: {type(found).__name__}: {line}" if where else f"failed: {line}"
        elif isinstance(found, str):
            line = found
        else:
            line = f"{found.ended} after {how_many(found.epochs, 'epoch')}, {found.seconds:.0f} s; best {found.valid:.4f}"
            line += found.units(found.valid) if found.test is None else f", test {found.test:.4f}{found.units(found.test)}"
        say(f"{job}: {line}")

    sweep(jobs, min(at_once, max(len(jobs), 1)), deadline, report, progress)
    return [Results.open(folder, config) for config in configs], failed  # with what other processes have filed since
