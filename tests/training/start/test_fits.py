"""A checkpoint is refused where it does not fit the run, or the split, that it is wanted for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from told import run
from typer.testing import CliRunner

from enfa.cli.app import app

SMILES = [f"{'C' * (1 + k % 9)}{end}" for k in range(14) for end in "ON"]


def test_fewer_epochs_than_are_done(trained: tuple[Path, Path, bytes]) -> None:
    path = trained[0]
    said = "last.ckpt has 2 epochs behind it: Expected epochs >= 2 to go on from there, got 1"
    result = CliRunner().invoke(app, ["train", str(path), "epochs=1", "--resume", "--no-progress"])
    lines = [line for line in result.stderr.splitlines() if line]
    assert result.exit_code == 2 and len(lines) == 1 and said in lines[0], result.stderr
    sweep = ["sweep", path, "epochs=1", "--folds", "0", "--results", path.parent / "r", "--no-progress"]
    result = CliRunner().invoke(app, [str(word) for word in sweep])
    assert result.exit_code == 1 and f"fold 0 seed 0: failed: {path.parent}" in result.output and said in result.output
    # as many as are done is no mistake
    again = CliRunner().invoke(app, ["train", str(path), "--resume", "--no-progress"])
    assert again.exit_code == 0 and "all epochs: 2 epochs" in again.output


def test_test_on_graphs_that_were_trained_on(
    config_file: Callable[..., Path], make_npz: Callable[..., Path], tmp_path: Path
) -> None:
    data, more = make_npz(np.arange(20) % 2), {"num_layers": 1, "hidden_channels": 4, "epochs": 1}
    config = config_file(dataset=str(data), **more)
    assert run("train", config, "--no-progress") == ""
    folder = tmp_path / "runs" / "tiny" / "fold-0-seed-0"
    test = ["test", config, "--checkpoint", folder / "last.ckpt", "--no-progress"]
    said = "last.ckpt was trained on another part of the data ({} here): Expected the split that it was trained with"
    for setting, differ in (
        ("fold=5", "fold is 0 there and 5"), ("fold_seed=1", "fold_seed is 0 there and 1"),
        ("validation=test", "validation is 'next' there and 'test'"),
    ):  # fmt: skip
        assert said.format(differ) in run(*test, setting), setting
    (tmp_path / "copy.npz").write_bytes(data.read_bytes())  # the same graphs, whatever the file is called
    assert said.format("fold is 0 there and 5") in run(*test, f"dataset={tmp_path / 'copy.npz'}", "fold=5")
    assert run(*test) == run(*test, f"dataset={tmp_path / 'copy.npz'}") == run(*test, "seed=1") == ""
    assert run("test", folder, "--no-progress") == "" and "fold is 0" in run("test", folder, "fold=1", "--no-progress")
    # other graphs have a split of their own
    other = make_npz(np.arange(20) % 2, "another", seed=7)
    assert run(*test, f"dataset={other}", "fold=5") == ""


def test_test_where_the_split_is_given(config_file: Callable[..., Path], make_npz: Callable[..., Path]) -> None:
    """Settings of folds say nothing then."""
    parts = {"split_train": np.arange(12), "split_valid": np.arange(12, 16), "split_test": np.arange(16, 20)}
    data = make_npz(np.arange(20) % 2, **parts)
    config = config_file(dataset=str(data), num_layers=1, hidden_channels=4, epochs=1)
    assert run("train", config, "--no-progress") == ""
    assert run("test", config, "fold_seed=3", "validation=test", "--no-progress") == ""


def test_test_with_another_split_of_a_table(tmp_path: Path, config_file: Callable[..., Path]) -> None:
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    data = tmp_path / "m.csv"
    parts = ["train"] * 20 + ["valid"] * 4 + ["test"] * 4
    rows = [f"{text},{k % 2},{part}" for k, (text, part) in enumerate(zip(SMILES, parts))]
    data.write_text("\n".join(["smiles,active,part", *rows]) + "\n")
    more = {"num_layers": 1, "hidden_channels": 4, "epochs": 1, "conv": "gine", "metric": "accuracy", "targets": ["active"]}
    drawn = config_file("drawn", dataset=str(data), **more)
    given = config_file("given", dataset=str(data), split="column:part", **more)
    assert run("train", drawn, "--no-progress") == run("train", given, "--no-progress") == ""
    assert run("test", drawn, "split=random", "validation=next", "--no-progress") == ""  # what None means
    assert "(fold_seed is 0 there and 1 here)" in run("test", drawn, "fold_seed=1", "--no-progress")
    assert "(split is 'random' there and 'column:part' here)" in run("test", drawn, "split=column:part", "--no-progress")
    assert run("test", given, "fold_seed=1", "--no-progress") == ""
