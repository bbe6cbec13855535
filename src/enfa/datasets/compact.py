"""Benchmarks out of one ``.npz`` file each, for machines without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from enfa.datasets.benchmark import Benchmark
from enfa.datasets.molecules import ATOM_CHANNELS, BOND_CHANNELS
from enfa.datasets.ogb_csv import OGB_TASKS
from enfa.datasets.own import from_npz

__all__ = ["compact_file", "from_compact"]

# What the file cannot say of itself.
_MOLECULES = {"in_channels": ATOM_CHANNELS, "edge_channels": BOND_CHANNELS}
_FACTS: dict[str, dict[str, Any]] = {
    "EXP": {"num_outputs": 2, "in_channels": [2]},
    "CEXP": {"num_outputs": 2, "in_channels": [2]},
    "peptides-func": {"metric": "ap", "num_outputs": 10, **_MOLECULES},
    **{n: {"metric": metric, "num_outputs": tasks, **_MOLECULES} for n, (_, tasks, metric) in OGB_TASKS.items()},
}


def compact_file(name: str, root: str | Path) -> Path:
    """Where the file of a benchmark would lie."""
    return Path(root) / f"{name.replace('-', '_')}.npz"


def from_compact(name: str, root: str | Path, *, use_node_attr: bool = False) -> Benchmark:
    """The benchmark that :func:`enfa.datasets.load` reads from raw files, from ``root/NAME.npz`` instead.

    The arrays are those of :func:`enfa.datasets.from_npz`; hyphens of the name are underscores in the file's.
    """
    return from_npz(compact_file(name, root), name=name, use_node_attr=use_node_attr, **_FACTS.get(name, {}))
