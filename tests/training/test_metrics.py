"""Errors of standardised numbers say so, wherever they are shown."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from enfa.cli.app import app
from enfa.training import read_config
from enfa.training.build import open_benchmark
from enfa.training.settings.folder import BEST, folder_of
from enfa.training.trained.predict_table import predict_table

pytest.importorskip("rdkit", reason="rdkit is not installed")
SMILES = [f"{'C' * (1 + k % 9)}{end}" for k in range(14) for end in "ON"]
SMALL = {"num_layers": 1, "hidden_channels": 4, "epochs": 2, "conv": "gine"}


def run(*words: object) -> str:
    result = CliRunner().invoke(app, [*map(str, words), "--no-progress"])
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def write(path: Path, columns: str, row: Callable[[int], str]) -> str:
    path.write_text("\n".join([f"smiles,{columns}", *(f"{text},{row(k)}" for k, text in enumerate(SMILES))]) + "\n")
    return str(path)


def test_scores_of_test_and_sweep(tmp_path: Path, config_file: Callable[..., Path]) -> None:
    data = write(tmp_path / "m.csv", "heat", lambda k: f"{100 * len(SMILES[k]) + k}")
    path = config_file(dataset=data, **SMALL)
    table = run("sweep", path, "--results", tmp_path / "results")
    line = re.search(r"test ([\d.]+) standard deviations, which is ([\d.]+) in units of heat", table)
    assert line is not None and "mae (deviations)" in table, table
    said = re.search(r"test score: mae ([\d.]+) standard deviations, which is ([\d.]+) in units of heat", run("test", path))
    assert said is not None and float(said[1]) == pytest.approx(float(line[1]), abs=1e-4)
    folder = folder_of(read_config(path))
    assert run("test", folder) == run("test", folder / "best.ckpt") == said.string  # without settings, which the run has kept
    # what predictions are off by, in the units of the file
    config = read_config(path)
    best = folder_of(config) / BEST
    rows = predict_table(best, Path(data)).rows
    errors = [abs(float(rows[k]["heat"]) - rows[k]["predicted_heat"]) for k in open_benchmark(config).split()["test"]]
    assert float(said[2]) == pytest.approx(np.mean(errors), rel=1e-3) and float(said[2]) > 10 * float(said[1])


def test_several_targets_with_blanks(tmp_path: Path, config_file: Callable[..., Path]) -> None:
    """Each row counts where it was measured; predictions are of all targets, of an ensemble with deviations."""

    def row(k: int) -> str:
        return "," if k == 5 else f"{'NA' if k % 3 == 0 else 100 * len(SMILES[k])},{'' if k % 4 == 1 else k % 7 / 10}"

    data = write(tmp_path / "m.csv", "heat,logp", row)
    path = config_file(dataset=data, targets=["heat", "logp"], task="regression", **SMALL)
    assert "3 rows without a label left out" in run("train", path, "--ensemble", 2)
    assert "standard deviations" in run("test", path)
    folder = folder_of(read_config(path)).parent
    found = predict_table(folder, Path(data))
    names = [f"predicted_{name}{end}" for name in ("heat", "logp") for end in ("", "_deviation")]
    assert list(found.rows[0]) == ["smiles", "heat", "logp", *names] and found.count == len(SMILES)
    heat, logp = (np.array([row[f"predicted_{name}"] for row in found.rows]) for name in ("heat", "logp"))
    assert 100 < heat.mean() < 1100 and abs(logp.mean()) < 2  # each in its own units
