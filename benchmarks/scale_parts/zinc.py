"""What is compiled: ZINC-full, and millions of graphs made from it."""

from __future__ import annotations

from typing import Any

import numpy as np

import enfa
from enfa.datasets.known import compact_file
from enfa.datasets.npz.zinc import zinc_arrays
from enfa.datasets.streams import FlatStream
from scale_parts.molecules import ChangedMolecules

ATOMS, BONDS, LAYERS = 28, 4, 6


def model() -> enfa.DSGNN:
    return enfa.DSGNN([ATOMS], 32, 1, LAYERS, "gine", edge_channels=[BONDS])


def zinc(data: str, graphs: int) -> FlatStream:
    """The first graphs of ZINC-full."""
    flat, y = zinc_arrays("ZINC-full", compact_file("ZINC-full", data))
    some = np.arange(graphs)
    return FlatStream(flat, y) if graphs == len(y) else FlatStream(flat.subset(some), y[some])


def compiled(graphs: Any, out: str, size: int, **options: Any) -> Any:
    return enfa.compile(graphs, enfa.NodeMarking(), model(), out=out, shard_size=size, progress=False, **options)


def compile_zinc(data: str, out: str, graphs: int, workers: int, size: int) -> None:
    compiled(zinc(data, graphs), out, size, workers=workers)


def compile_millions(data: str, out: str, graphs: int, workers: int, size: int) -> None:
    flat, y = zinc_arrays("ZINC-full", compact_file("ZINC-full", data), both=False)
    compiled(ChangedMolecules(flat, y, graphs), out, size, workers=workers)
