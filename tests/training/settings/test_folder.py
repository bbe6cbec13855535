"""A file that was changed since is no file to go on with."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from enfa.cli.app import app

SMILES = [f"{'C' * (1 + k % 9)}{end}" for k in range(14) for end in "ON"]
CHANGED = "as it was then: Expected the same file, got one that was changed since"


def run(*words: object) -> str:
    result = CliRunner().invoke(app, [*map(str, words)])
    lines = result.stderr.splitlines()
    assert result.exit_code in (0, 2) and "Traceback" not in result.output, result.output
    return lines[-1] if result.exit_code else ""


def write(path: Path, active: Callable[[int], object]) -> None:
    rows = [f"{text},{active(k)}" for k, text in enumerate(SMILES)]
    path.write_text("\n".join(["smiles,active", *rows]) + "\n")


@pytest.mark.parametrize("more", [[], ["--ensemble", "2"]])
def test_a_folder_that_cannot_be_written(
    tmp_path: Path, config_file: Callable[..., Path], more: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is read."""
    config, file = config_file(), tmp_path / "file"
    file.write_text("")
    monkeypatch.setattr("enfa.training.build.open_benchmark", None)
    said = run("train", config, f"out={file / 'runs'}", "--no-progress", *more)
    assert f"to be a folder that can be written, got {file}, which is a file" in said
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode, **how: Path(path) != tmp_path and access(path, mode, **how))
    said = run("train", config, f"out={tmp_path / 'new' / 'runs'}", "--no-progress", *more)
    assert f"got {tmp_path}, which may not be written: choose another" in said
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("more", [[], ["--ensemble", "2"]])
def test_resume(tmp_path: Path, config_file: Callable[..., Path], more: list[str]) -> None:
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    data = tmp_path / "m.csv"
    write(data, lambda k: k % 2)
    config = config_file(dataset=str(data), num_layers=1, hidden_channels=4, epochs=1, conv="gine", metric="accuracy")
    train = ["train", config, "--no-progress", *more]
    assert run(*train) == ""
    assert run(*train, "--resume", "epochs=2") == ""
    write(data, lambda k: (k + 1) % 2)
    for epochs in (2, 3):  # nothing to do, or something: neither is done
        message = run(*train, "--resume", f"epochs={epochs}")
        assert CHANGED in message and str(data) in message, message
    write(data, lambda k: k % 2)
    assert run(*train, "--resume", "epochs=3") == ""


def test_sweep(tmp_path: Path, config_file: Callable[..., Path], make_npz: Callable[..., Path]) -> None:
    data = make_npz(np.arange(20) % 2)
    words = ["sweep", config_file(dataset=str(data), num_layers=1, hidden_channels=4, epochs=1), "--no-progress"]
    words += ["--results", tmp_path / "results", "--folds"]
    assert run(*words, "0") == "" and run(*words, "0-1") == ""
    make_npz(np.arange(20) // 10)
    assert CHANGED in run(*words, "0-2")


def test_test(config_file: Callable[..., Path], make_npz: Callable[..., Path]) -> None:
    """A split that is drawn anew has graphs to test on that were trained on."""
    data = make_npz(np.arange(20) % 2)
    config = config_file(dataset=str(data), num_layers=1, hidden_channels=4, epochs=1)
    assert run("train", config, "--no-progress") == "" == run("test", config, "--no-progress")
    make_npz(np.arange(20) // 10)
    assert CHANGED in run("test", config, "--no-progress")


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
