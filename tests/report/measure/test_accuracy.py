import json
from pathlib import Path
from typing import Any

import pytest

from enfa.report.measure.accuracy import read_accuracy
from enfa.report.show.accuracy import show_accuracy


def _rows(found: dict[str, Any]) -> list[list[str]]:
    return show_accuracy({"results": {"files": found}}).tables[0].rows


def test_without_results_the_papers_numbers_stand_alone(tmp_path: Path) -> None:
    rows = _rows(read_accuracy(tmp_path / "nowhere"))
    assert len(rows) == 12
    assert all(row[5] == "no run yet" for row in rows)


def test_results_stand_beside_the_papers(tmp_path: Path) -> None:
    pytest.importorskip("enfa.training.results.collect", reason="training is not there")
    run = {"seed": 0, "metric": "accuracy", "ended": "all epochs", "epochs": 2, "loss": [1.0, 0.5], "best_epoch": 1,
           "valid": 0.8, "test": 0.75, "version": "0", "torch": "0", "hardware": "a machine", "seconds": 1.0}  # fmt: skip
    runs = [{**run, "fold": fold, "test": test, "score": [0.5, test]} for fold, test in ((0, 0.7), (1, 0.8))]
    config = {"dataset": "PROTEINS", "policy": "node_deletion", "name": "PROTEINS-ds-nd"}
    (tmp_path / "PROTEINS-ds-nd.json").write_text(json.dumps({"config": config, "runs": runs}))
    (tmp_path / "storage.json").write_text(json.dumps({"layout": "paper", "results": []}))
    found = read_accuracy(tmp_path)
    assert list(found) == ["PROTEINS | node deletion | DS"]
    row = next(row for row in _rows(found) if row[:3] == ["PROTEINS", "node deletion", "DS"])
    assert row[4:] == ["77.1 ± 4.6", "75.0 ± 5.0", "2"]
    assert next(iter(found.values()))["hardware"] == ["a machine"]  # in the JSON file
    # a setting that differs stands behind the name, whatever it sorts as
    for name in ("PROTEINS-ds-nd-lr4", "PROTEINS-ds-nd_lr4"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"config": {**config, "name": name}, "runs": runs[:1]}))
    assert read_accuracy(tmp_path) == found
    # errors are no accuracy
    runs = [{**run, "metric": "mae"} for run in runs]
    (tmp_path / "ZINC.json").write_text(json.dumps({"config": {**config, "dataset": "ZINC"}, "runs": runs}))
    assert read_accuracy(tmp_path) == found
