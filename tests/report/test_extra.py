"""Where matplotlib is missing, what draws says so before it works."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from enfa.cli.app import app


@pytest.mark.parametrize(
    "args",
    [
        ["reproduce", "--quick", "--out", "report"],
        ["inspect", "none.npz", "--plot", "rows.png"],
        ["power", "none.npz", "--plot", "power.png"],
        ["storage", "--datasets", "none.npz", "--plot", "storage.png"],
    ],
    ids=lambda args: args[0],
)
def test_commands_say_what_to_install(args: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 2
    assert "got none: pip install 'enfa[report]'" in result.stderr and "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []
