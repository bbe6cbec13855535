"""Benchmarks out of one ``.npz`` file each, for machines without a network."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from enfa.datasets.benchmark import Benchmark
from enfa.datasets.known import COUNTING_NAMES, ZINC_NAMES, compact_file
from enfa.datasets.molecules import ATOM_CHANNELS, BOND_CHANNELS
from enfa.datasets.npz.counting import load_counting
from enfa.datasets.npz.strongly_regular import load_sr25
from enfa.datasets.npz.zinc import load_zinc
from enfa.datasets.official.ogb_csv import OGB_TASKS
from enfa.datasets.own import from_npz

__all__ = ["FACTS", "from_compact"]

# What the file cannot say of itself.
_MOLECULES = {"in_channels": ATOM_CHANNELS, "edge_channels": BOND_CHANNELS}
FACTS: dict[str, dict[str, Any]] = {
    "EXP": {"num_outputs": 2, "in_channels": [2]},
    "CEXP": {"num_outputs": 2, "in_channels": [2]},
    "peptides-func": {"metric": "ap", "num_outputs": 10, **_MOLECULES},
    **{n: {"metric": metric, "num_outputs": tasks, **_MOLECULES} for n, (_, tasks, metric) in OGB_TASKS.items()},
}

# Benchmarks that are read from these files only (known.NPZ_NAMES).
_READERS: dict[str, Callable[[Path], Benchmark]] = {
    **{name: partial(load_zinc, name) for name in ZINC_NAMES},
    **{name: partial(load_counting, name) for name in COUNTING_NAMES},
    "SR25": load_sr25,
}


def from_compact(name: str, root: str | Path, *, use_node_attr: bool = False) -> Benchmark:
    """The benchmark that :func:`enfa.datasets.load` reads from raw files, from ``root/NAME.npz`` instead.

    The arrays are those of :func:`enfa.datasets.from_npz`; hyphens of the name are underscores in the file's.
    """
    if name in _READERS:
        if use_node_attr:
            raise ValueError(f"{name} has no node attributes")
        return _READERS[name](compact_file(name, root))
    return from_npz(compact_file(name, root), name=name, use_node_attr=use_node_attr, **FACTS.get(name, {}))
