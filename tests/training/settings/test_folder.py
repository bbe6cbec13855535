"""A file that was changed since is no file to go on with."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from told import run

SMILES = [f"{'C' * (1 + k % 9)}{end}" for k in range(14) for end in "ON"]
CHANGED = "as it was then: Expected the same file, got one that was changed since"


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
