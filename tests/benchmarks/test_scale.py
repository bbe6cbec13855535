"""The millions of graphs of benchmarks/scale.py do not depend on how they are read."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from enfa.datasets.flat import FlatGraphs

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_figures_of_the_result_file() -> None:
    page = (ROOT / "docs" / "scale.md").read_text()
    results = json.loads((ROOT / "results" / "cpu" / "scale.json").read_text())["results"]
    for one in (one for one in results if one["part"] in ("zinc", "millions")):
        numbers = (one["graphs"], round(one["seconds"]), round(one["cpu_s"]), one["graphs_per_cpu_s"])
        row = " | ".join([*(f"{n:,}" for n in numbers), f"{one['peak_gib']:.2f}", f"{one['bytes'] / 1e9:.2f}"])
        assert f"| {row} |" in page, row
        assert one["peak_gib"] < 4 and (one["part"] != "zinc" or one["seconds"] <= 150)


@pytest.fixture()
def molecules(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield __import__("scale_parts.molecules", fromlist=["it"])
    for name in [n for n in sys.modules if n.split(".")[0] == "scale_parts"]:
        del sys.modules[name]


def test_graphs_depend_on_seed_and_place_only(molecules: ModuleType) -> None:
    rng, sizes = np.random.default_rng(0), np.full(50, 9)
    edges = np.tile(np.stack([np.arange(8), np.arange(1, 9)], 1), (50, 1))
    flat = FlatGraphs("paths", sizes, sizes - 1, edges, rng.integers(0, 5, 450), rng.integers(0, 3, 400))
    y = rng.random((50, 1))

    def read(size: int, seed: int = 0) -> list[np.ndarray]:
        blocks = list(molecules.ChangedMolecules(flat, y, 130, seed).flat_blocks(repeat(size)))
        assert sum(len(block.num_nodes) for block, _ in blocks) == 130
        parts = [[block.x, block.edge_attr, block.edges, labels] for block, labels in blocks]
        return [np.concatenate(part) for part in zip(*parts)]

    once, again, other = read(130), read(7), read(130, seed=1)
    assert all(np.array_equal(a, b) for a, b in zip(once, again)) and not np.array_equal(once[0], other[0])
    changed = (once[0][:450] != flat.x).mean()
    assert 0.03 < changed < 0.12 and not np.array_equal(once[0][:450], once[0][450:900])
