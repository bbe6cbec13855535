from __future__ import annotations

import runpy
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "benchmarks"


def test_measures_one_size():
    scaling = runpy.run_path(str(SCRIPTS / "scaling.py"))
    found = scaling["measure"](500, 4, 3, 0, 8, 1)
    assert found["nodes"] == 500 and found["rows"][1] <= 500
    assert "500" in scaling["_line"](found)
    twice = [{"nodes": n, "t": 3.0 * n**1.5} for n in (10, 100, 1000)]
    assert scaling["exponent"](twice, "t") == pytest.approx(1.5)


def test_counts_rows_of_policies(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["policies.py", "random", "--graphs", "3"])
    runpy.run_path(str(SCRIPTS / "policies.py"), run_name="__main__")
    assert "EgoNets(hops=2" in capsys.readouterr().out
