from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from enfa.cli.app import app
from enfa.training import Config
from enfa.training.unread import unread_edges

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


def test_graphs_without_attributes_need_no_word(config_file: Callable[..., Path]) -> None:
    result = CliRunner().invoke(app, ["train", str(config_file(epochs=1)), "--no-progress"])
    assert result.exit_code == 0 and result.stderr == ""
