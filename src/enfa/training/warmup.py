"""Compiling the kernels of a run before it: one short epoch on a few graphs of its dataset, with its model at full width."""

import time
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory

import numpy as np

from enfa.cache import compiled_kernels
from enfa.datasets import Benchmark
from enfa.training.build import open_benchmark
from enfa.training.run import fit_few
from enfa.training.settings.config import Config

__all__ = ["Warmed", "few_graphs", "warm_up"]

BATCHES = 3  # to train on: a step that is captured runs eagerly, is captured, and is replayed


@dataclass(frozen=True)
class Warmed:
    """What was compiled, in numbers of kernels, and how long it took."""

    numba: int
    triton: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.numba} kernels of numba and {self.triton} of Triton compiled, {self.seconds:.1f} s"


def _first(data: Benchmark, graphs: np.ndarray, count: int) -> np.ndarray:
    """The first ones; of yes/no tasks also a yes and a no of one task, where there are: others have no score."""
    if data.task != "binary":
        return graphs[:count]
    labels = data.labels[graphs]
    both = (labels == 1).any(0) & (labels == 0).any(0)
    if not both.any():
        return graphs[:count]
    yes, no = ((labels == answer).argmax(0)[both] for answer in (1, 0))
    task = np.maximum(yes, no).argmin()
    needed = [yes[task], no[task]]
    order = np.concatenate([needed, np.delete(np.arange(len(graphs)), needed)])
    return graphs[np.sort(order[: max(count, 2)])]


def few_graphs(data: Benchmark, config: Config) -> Benchmark:
    """Some batches of the graphs to train on, one to validate on and one to test, as a benchmark with that split."""
    split = data.split(config.fold, config.fold_seed, validation=config.validation)
    counts = {"train": BATCHES, "valid": 1, "test": 1}
    chosen = {part: _first(data, split[part], count * config.batch_size) for part, count in counts.items()}
    every = np.unique(np.concatenate(list(chosen.values())))
    places = {part: np.searchsorted(every, graphs) for part, graphs in chosen.items()}
    return replace(data, graphs=[data.graphs[g] for g in every], splits=places)


def warm_up(config: Config) -> Warmed:
    """Run what a run of the config runs, as briefly as possible; its files are thrown away, its kernels are kept."""
    if config.level != "graphs":
        raise ValueError(f"Expected a config of graphs to warm up for, got one of {config.level} of one graph")
    before, began = compiled_kernels(), time.perf_counter()
    with TemporaryDirectory(prefix="enfa-warmup-") as folder:
        short = replace(
            config, out=folder, cache=None, shards=None, epochs=1, early_stopping=None, stop_at=None, devices=1, num_workers=0,
            fold=0,
        )  # fmt: skip
        fit_few(short, few_graphs(open_benchmark(config), config))
    new = {name: count - before[name] for name, count in compiled_kernels().items()}
    return Warmed(new["numba"], new["triton"], time.perf_counter() - began)
