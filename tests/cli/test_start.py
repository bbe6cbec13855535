"""What answers before PyTorch is imported, which takes seconds."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from enfa.cli.app import COMMANDS, app

CONFIG = "dataset: CSL\nmodel: ds\n"
CALLS = {
    "--help": "Usage", "--version": "enfa ", "train --help": "lr_decay", "sweep --help": "CONFIG", "test --help": "--part",
    "train nowhere.yaml": "There is no config file", "train {file} lrr=1": "did you mean 'lr'?",
    "train {file} lr=fast": "Expected lr to be a number", "train {file} policy=edges": "Expected the policy to be one of",
    "train {file} policy_params.hops=2": "a parameter of node_marking", "train {file} model=dsx": "Expected model to be one of",
    "train {file} dataset=CLS root={folder}": "did you mean 'CSL'", "train {file} dataset=none.npz": "There is no dataset file",
    "train {file} --resume out={folder}": "There is no run to resume", "sweep {file} epochs=0": "Expected epochs",
    "nothing": "No such command",
}  # fmt: skip


def test_help_and_mistakes_need_no_pytorch(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CONFIG)
    code = f"""
import sys
import typer.testing
from enfa.cli.app import app
from enfa.datasets.official import fetch
fetch.TU = "file:///nowhere"
for call, answer in {CALLS!r}.items():
    args = call.format(file={str(tmp_path / "a.yaml")!r}, folder={str(tmp_path)!r}).split()
    result = typer.testing.CliRunner().invoke(app, args, env={{"COLUMNS": "200"}})
    assert answer in result.output, (call, result.output, result.exception)
    assert "torch" not in sys.modules, call
    assert call != "--help" or "numpy" not in sys.modules
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_every_command_is_listed_and_found() -> None:
    for name in COMMANDS:
        result = CliRunner().invoke(app, [name, "--help"])
        assert result.exit_code == 0 and f"{name} [OPTIONS]" in result.output


def test_as_a_module(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["enfa", "--version"])
    with pytest.raises(SystemExit) as end:
        runpy.run_module("enfa", run_name="__main__")
    assert not end.value.code and capsys.readouterr().out.startswith("enfa ")
