from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "benchmarks"


def _scaling() -> dict:
    return runpy.run_path(str(SCRIPTS / "scaling.py"))


@pytest.mark.parametrize("features", ["3", "continuous"])
def test_measures_one_size(features, tmp_path):
    scaling = _scaling()
    found = [scaling["measure"](n, 0, features, 4, 8, 1) for n in (500, 10_000, 20_000)]
    assert found[0]["nodes"] == 500 and found[0]["rows"][1] <= 500
    hub = scaling["measure"](300, 200, features, 4, 8, 1)
    path = tmp_path / "scaling.json"
    path.write_text(json.dumps({"machine": {"cpu": "a", "threads": 1, "torch": "2"}, "results": [*found, hub]}))
    text = scaling["figures"](path)
    assert "| 10,000 |" in text and "CPU time with n^" in text and "degree 200" in text


def test_exponent():
    twice = [{"nodes": n, "t": 3.0 * n**1.5} for n in (10, 100, 1000)]
    assert _scaling()["exponent"](twice, "t") == pytest.approx(1.5)


def test_the_docs_quote_the_results():
    """And a million nodes fit into 16 GiB, whatever their features."""
    root, scaling = SCRIPTS.parent, _scaling()
    results = root / "results" / "cpu" / "scaling.json"
    page = (root / "docs" / "policies.md").read_text()
    assert page == scaling["with_figures"](page, results)
    peaks = {f["features"]: f["peak_gib"] for f in json.loads(results.read_text())["results"] if f["nodes"] == 10**6}
    assert set(peaks) == {"4", "continuous"} and max(peaks.values()) < 16


def test_counts_rows_of_policies(capsys, monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    monkeypatch.setattr("sys.argv", ["policies.py", "random", "--graphs", "3"])
    runpy.run_path(str(SCRIPTS / "policies.py"), run_name="__main__")
    assert "EgoNets(hops=2" in capsys.readouterr().out


def test_the_docs_quote_the_rows_of_policies(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    policies = runpy.run_path(str(SCRIPTS / "policies.py"))
    page = (SCRIPTS.parent / "docs" / "policies.md").read_text()
    assert page == policies["with_figures"](page, json.loads(policies["RESULT"].read_text()))
