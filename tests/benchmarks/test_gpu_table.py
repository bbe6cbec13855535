"""The page of GPU figures says what results/gpu holds."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    made = runpy.run_path(str(ROOT / "benchmarks" / "gpu_table.py"))
    page = (ROOT / "docs" / "gpu.md").read_text()
    assert made["page"](ROOT / "results" / "gpu") == page, "run python benchmarks/gpu_table.py"
