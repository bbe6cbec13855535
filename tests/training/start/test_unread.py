from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import code_of_mine
import numpy as np
import pytest
from typer.testing import CliRunner

from enfa.cli.app import app
from enfa.datasets import from_npz
from enfa.plan.step import step_of
from enfa.training import Config
from enfa.training.start.unread import unlearnt_classes, unread_edges

pytest.importorskip("lightning", reason="training needs the extra enfa[train]")

SAID = "has edge attributes, which {}gin does not read: {}gine does."
SETTINGS = ["num_layers=1", "hidden_channels=4", "epochs=1", "accelerator=cpu", "threads=1"]


@pytest.mark.parametrize(("model", "conv", "instead"), [
    ("ds", None, "gine"), ("dss", "gcn", "gine"), ("ds", "gine", None), ("subgraphormer", None, None),
])  # fmt: skip
def test_convs_that_read_no_edges(model: str, conv: str | None, instead: str | None) -> None:
    config = Config(dataset="ZINC", model=model, conv=conv)
    line = unread_edges(config, [4], "conv=")
    assert line is None if instead is None else line is not None and line.endswith(f"conv={instead} does.")
    assert unread_edges(config, None, "conv=") is None


def test_models_whose_convs_are_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENFA_CODE", code_of_mine.__file__)
    config, steps = (
        Config(dataset="ZINC", model="Plain"),
        [step_of("propagate", "pairs", (0,), edges) for edges in (False, True)],
    )
    assert unread_edges(config, [4], steps=steps[:1]) == "ZINC has edge attributes, which Plain does not read."
    assert unread_edges(config, [4], steps=steps) is unread_edges(config, None, steps=steps[:1]) is None


def test_converted_molecules(tmp_path: Path) -> None:
    """Those that come from the table itself have a conv that reads bonds."""
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    table, file = tmp_path / "m.csv", tmp_path / "m.npz"
    table.write_text("smiles,logp\n" + "".join(f"{'C' * (k % 7 + 2)}O,{k}.5\n" for k in range(30)))

    def said(command: str, *words: object) -> tuple[str, str]:
        result = CliRunner().invoke(app, [command, *map(str, words), "--no-progress"])
        assert result.exit_code == 0, result.output
        return result.stdout, result.stderr

    assert CliRunner().invoke(app, ["convert", str(table), str(file), "--target", "logp", "--split", "random"]).exit_code == 0
    settings = [*SETTINGS, f"out={tmp_path / 'runs'}"]
    assert said("train", table, "--target", "logp", *settings)[1] == ""
    told, line = said("train", file, "--ensemble", 2, *settings, "name=two")
    assert line == f"{file} {SAID.format('conv=', 'conv=')}\n" and "has edge attributes" not in told
    assert said("train", file, "conv=gine", *settings, "name=gine")[1] == ""
    shards = ["--layers", 1, "--workers", 1, "--out"]
    assert SAID.format("--conv ", "--conv ") in said("compile", file, *shards, tmp_path / "a")[1]
    assert said("compile", file, "--conv", "gine", *shards, tmp_path / "b")[1] == ""


def test_a_class_that_is_not_trained_on(tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    table = tmp_path / "m.csv"
    table.write_text("smiles,colour,part\n" + "".join(
        f"{'C' * (k % 7 + 2)}O,{('red', 'blue', 'green')[k // 10]},{'train' if k < 20 else ('valid', 'test')[k % 2]}\n"
        for k in range(30)
    ))  # fmt: skip
    words = ["train", str(table), "--target", "colour", "--split", "column:part", "--ensemble", "2", f"out={tmp_path}"]
    result = CliRunner().invoke(app, [*words, *SETTINGS, "--no-progress"])
    said = f"{table} has no molecule of the class 'green' to train on: the model cannot learn to predict 'green'.\n"
    assert result.exit_code == 0 and result.stderr == said, result.output


@pytest.mark.parametrize("level", ["graphs", "nodes"])
def test_one_class_is_nothing_to_learn(make_npz: Callable[..., Path], tmp_path: Path, level: str) -> None:
    path = make_npz(np.zeros(40, np.int64))
    if level == "nodes":
        part, ends = np.arange(12) % 3, np.stack([np.arange(12), (np.arange(12) + 1) % 12])
        masks = {f"{name}_mask": part == k for k, name in enumerate(("train", "val", "test"))}
        np.savez(path, x=np.zeros((12, 1)), edge_index=ends, y=np.zeros(12, np.int64), **masks)
    result = CliRunner().invoke(app, ["train", str(path), *SETTINGS, f"level={level}", f"out={tmp_path}", "--no-progress"])
    assert result.exit_code == 2 and f"Expected at least two classes to learn in {path.stem}, got one" in result.stderr


def test_classes_by_name_and_by_number(make_npz: Callable[..., Path]) -> None:
    y = np.arange(40) % 4
    data = from_npz(make_npz(y))
    assert unlearnt_classes(data, np.flatnonzero(y < 2)) == ["2", "3"] and unlearnt_classes(data, np.arange(4)) == []
    named = from_npz(make_npz(y, classes=np.array(list("abcd"))))
    assert unlearnt_classes(named, np.flatnonzero(y < 3)) == ["d"]
    assert unlearnt_classes(from_npz(make_npz((y > 1)[:, None])), np.arange(2)) == [], "no classes, but yes and no"


def test_graphs_without_attributes_need_no_word(config_file: Callable[..., Path]) -> None:
    result = CliRunner().invoke(app, ["train", str(config_file(epochs=1)), "--no-progress"])
    assert result.exit_code == 0 and result.stderr == ""
