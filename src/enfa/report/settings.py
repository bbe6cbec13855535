"""How much is measured: everything, a sample of it, or as little as the tests need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from enfa.datasets import Benchmark
from enfa.edits import EdgeDeletion, NodeDeletion, NodeMarking, Policy

__all__ = ["DATASETS", "FULL", "MACHINE", "MATTERS", "POLICIES", "QUICK", "QUICK_CUDA", "SECTIONS", "TINY", "Settings"]

SECTIONS = ("storage", "breakdown", "exactness", "time", "accuracy")
POLICIES: dict[str, Callable[[], Policy]] = {
    "node marking": NodeMarking,
    "node deletion": NodeDeletion,
    "edge deletion": EdgeDeletion,
}
# the paper's six, and the conv that each is timed with beside GIN
DATASETS = {
    "PROTEINS": "graphconv",
    "EXP": "graphconv",
    "CEXP": "graphconv",
    "ogbg-moltox21": "gcn",
    "ogbg-molhiv": "gcn",
    "peptides-func": "gcn",
}
WIDTHS = {"ogbg-moltox21": 300, "ogbg-molhiv": 300, "peptides-func": 128}  # ESAN's; 32 for all others


# what a section's results depend on; datasets, and the layers that are timed, stand in the keys of its results
_STORAGE = ("scale", "seed", "layers", "storage_graphs")
_ALWAYS = ("scale", "seed", "device", "threads")
MATTERS: dict[str, tuple[str, ...]] = {
    "storage": _STORAGE,
    "breakdown": _STORAGE,
    "exactness": (*_ALWAYS, "exact_graphs", "exact_rows", "exact_layers", "exact_width", "exact_steps"),
    "time": (*_ALWAYS, "batch", "batch_rows", "largest_batch", "width", "repeats", "seconds", "memory_gb"),
    "accuracy": (),
}
# likewise of the machine and its versions, where that is not everything: bytes are the same on every one, and scores are read
MACHINE: dict[str, tuple[str, ...]] = {"storage": ("zstandard", "enfa"), "breakdown": ("zstandard", "enfa"), "accuracy": ()}


@dataclass(frozen=True)
class Settings:
    """What is measured. Two reports are comparable where their settings are equal."""

    scale: str
    device: str = "cpu"
    datasets: tuple[str, ...] = tuple(DATASETS)
    seed: int = 0
    layers: tuple[int, ...] = (2, 3, 4, 5)
    storage_graphs: int | None = None  # None: the whole dataset
    batch: int = 32
    batch_rows: int | None = None  # halve the batch while its conventional bags have more rows than this
    largest_batch: int = 4096  # of the paper's method
    width: int | None = None  # None: ESAN's
    variant_layers: tuple[int, ...] = (2, 3, 4, 5)  # of the other conv, of contexts, and of the paper's method
    repeats: int = 20
    seconds: float = 10.0  # at least three repeats, then no more than so long per setting
    exact_graphs: int = 32
    exact_rows: int = 100_000
    exact_layers: int = 4
    exact_width: int = 32
    exact_steps: int = 20
    threads: int | None = None  # of PyTorch; None: as it comes
    memory_gb: float | None = None  # None: what the machine has free

    def to(self, **changes: Any) -> Settings:
        return replace(self, **changes)

    def plain(self) -> dict[str, Any]:
        """As JSON has it: lists for tuples."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    def sample(self, data: Benchmark, count: int | None) -> np.ndarray:
        """Positions of ``count`` graphs, the same ones each time."""
        order = np.random.default_rng([self.seed, len(data.graphs)]).permutation(len(data.graphs))
        return order if count is None else order[:count]

    def width_of(self, dataset: str) -> int:
        return self.width or WIDTHS.get(dataset, 32)


FULL = Settings("full")
# two cores, ten minutes. One thread, because two only wait for each other on tables this small.
QUICK = Settings(
    "quick", storage_graphs=400, batch_rows=40_000, largest_batch=512, width=32, variant_layers=(4,), repeats=7,
    seconds=0.6, exact_graphs=8, exact_rows=4_000, exact_width=16, threads=1,
)  # fmt: skip
# a GPU has room for whole batches, and does not notice a width of 32
QUICK_CUDA = QUICK.to(device="cuda", batch_rows=None, width=None, repeats=20)
TINY = QUICK.to(
    scale="tiny", datasets=("EXP", "ogbg-moltox21"), layers=(2, 3), storage_graphs=12, batch=4, batch_rows=5_000,
    largest_batch=8, width=8, variant_layers=(2,), repeats=3, seconds=0.0, exact_graphs=2, exact_rows=2_000,
    exact_layers=2, exact_width=8, exact_steps=2,
)  # fmt: skip
