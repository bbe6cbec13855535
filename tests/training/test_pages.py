"""The code of docs/explain.md and docs/pretrained.md runs as it is written."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from enfa.cli.app import app

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize(("page", "blocks"), [("explain", 1), ("pretrained", 3)])
def test_code_runs(page: str, blocks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = re.findall(r"```(python|bash)\n(.*?)```", (DOCS / f"{page}.md").read_text(), re.DOTALL)
    assert len(found) == blocks
    names: dict[str, object] = {"__name__": page}
    for kind, code in found:
        if kind == "python":
            exec(code, names)
            continue
        for line in code.splitlines():
            command, *words = shlex.split(line)
            result = CliRunner().invoke(app, [*words, "threads=1", "--no-progress"])
            assert command == "enfa" and result.exit_code == 0, result.output
    written = {"explain": "explanation.png", "pretrained": "runs/new/fold-0-seed-0/best.ckpt"}
    assert (tmp_path / written[page]).stat().st_size > 1000
