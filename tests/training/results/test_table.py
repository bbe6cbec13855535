from dataclasses import replace
from pathlib import Path

import code_of_mine
import pytest
from typer.testing import CliRunner

from enfa.cli.app import app
from enfa.training import Config
from enfa.training.results.collect import Results
from enfa.training.results.record import Record
from enfa.training.results.table import markdown, read_results

CONFIG = Config.make({"dataset": "CSL", "name": "n", "epochs": 1})
RECORD = Record({}, 0, 0, "accuracy", "all epochs", 1, [0.0], [0.5], 0, 0.5, None, "0.1.0", "2.0", "a CPU", 12.0)


@pytest.mark.parametrize("content", [b"", b'{"config": {"data', b"\xff\xfe", b'{"config": {}, "runs": [', b'{"runs": []}'])
def test_a_damaged_file_is_not_left_out(tmp_path: Path, content: bytes) -> None:
    Results.open(tmp_path, CONFIG).add(RECORD)
    assert CliRunner().invoke(app, ["table", str(tmp_path)]).exit_code == 0
    (tmp_path / "other.json").write_bytes(content)
    result = CliRunner().invoke(app, ["table", str(tmp_path)])
    lines = [line for line in result.stderr.splitlines() if line]
    assert result.exit_code == 2 and len(lines) == 1, result.output
    assert str(tmp_path / "other.json") in lines[0] and ("is damaged" in lines[0] or "is no file of results" in lines[0])


@pytest.mark.parametrize("content", ['{"layout": "paper", "cells": [{"runs": 3}]}', "[]", "3"])
def test_files_of_other_commands_are_passed_by(tmp_path: Path, content: str) -> None:
    Results.open(tmp_path, CONFIG).add(RECORD)
    (tmp_path / "storage.json").write_text(content)
    result = CliRunner().invoke(app, ["table", str(tmp_path)])
    assert result.exit_code == 0 and not result.stderr and "accuracy" in result.output


def test_plain_configs_stand_by_policy(tmp_path: Path) -> None:
    for model, policy, name, test in (
        ("ds", "node_marking", "CSL-ds-nm", 0.7), ("dss", "node_marking", "CSL-dss-nm", 0.6),
        ("ds", "ego_nets", "CSL-ds-ego", 0.2), ("ds", "edge_deletion", "CSL-ds-ed-dropout5", 0.1),
    ):  # fmt: skip
        config = Config.make({"dataset": "CSL", "model": model, "policy": policy, "name": name, "epochs": 1, "paper": "71"})
        Results.open(tmp_path, config).add(replace(RECORD, test=test))
    text = markdown(read_results(tmp_path))
    assert "| CSL | 70.0 (71) |  |  | 60.0 (71) |" in text and text.count("| CSL |") == 1
    assert "| CSL-ds-ed-dropout5 | accuracy | 71 | 10.0 | 50.0 | 1 |  |" in text
    (tmp_path / "CSL-ds-nm.json").unlink()
    (tmp_path / "CSL-dss-nm.json").unlink()
    assert "By policy" not in markdown(read_results(tmp_path))


def test_results_of_models_of_ones_own_need_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENFA_CODE", code_of_mine.__file__)
    Results.open(tmp_path, Config.make({"dataset": "CSL", "name": "mine", "epochs": 1, "model": "Plain"})).add(RECORD)
    monkeypatch.delenv("ENFA_CODE")
    result = CliRunner().invoke(app, ["table", str(tmp_path), "--out", str(tmp_path / "results.md")])
    assert result.exit_code == 0 and "mine" in result.output, result.output
    assert "| mine | accuracy |" in (tmp_path / "results.md").read_text()
