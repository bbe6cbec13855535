"""docs/power.md shows what results/cpu/power.json holds."""

import json
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_has_the_figures_of_the_result_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    results = json.loads((ROOT / "results" / "cpu" / "power.json").read_text())["results"]
    power = runpy.run_path(str(ROOT / "benchmarks" / "power.py"))
    table, trained = power["table"](results), power["trained"]()
    assert trained in (ROOT / "docs" / "power.md").read_text(), "run python benchmarks/power.py --page"
    assert all(row.endswith("| 0 | 0 |") for row in trained.splitlines()[2:]), "a pair beyond the bound of its class"
    assert table in (ROOT / "docs" / "power.md").read_text(), "run python benchmarks/power.py --page"
    assert "| DSS, node marking | 207 | 225 | 253 | 60, 50, 100, 15 |" in table


def test_largest_limits_hold() -> None:
    """What was promised of the time on two cores: 30 s, and 120 s where there is a subgraph for every edge."""
    results = json.loads((ROOT / "results" / "cpu" / "power.json").read_text())["results"]
    assert len(results) == 22
    for one in results:
        of_edges = "edge deletion" in one["case"] or "I²-GNN" in one["case"]
        assert one["seconds"] < (120 if of_edges else 30), one["case"]
