"""How benchmarks/whole.py watches a process; what it runs needs other people's code, and hours."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("code", "minutes", "failed"),
    [
        ("pass", 1, None),
        ("raise SystemExit('no data')", 1, "no data"),
        ("import time; time.sleep(60)", 0.01, "stopped after 0.01"),
    ],
)
def test_says_how_a_process_ended(code: str, minutes: float, failed: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    found = importlib.import_module("whole").watched([sys.executable, "-c", code], minutes)
    for name in [n for n in sys.modules if n in ("whole", "common")]:
        del sys.modules[name]
    assert (failed is None) == ("failed" not in found) and (failed or "") in found.get("failed", "")
    assert 0 < found["seconds"] < 30 and found["host_gb"] > 0
