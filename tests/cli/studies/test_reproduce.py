import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from enfa.cli.app import app


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only", "storrage"], "did you mean 'storage'"),
        (["--device", "tpu"], "Expected --device cpu or cuda, got 'tpu'"),
        (["--datasets", "PROTEIN"], "Expected --datasets from PROTEINS"),
        (["--memory-gb", "-1"], "Expected --memory-gb to be a number > 0, got -1.0"),
        (["--memory-gb", "nan"], "Expected --memory-gb to be a number > 0, got nan"),
        (["--data", "nowhere"], "nowhere is no folder of .npz files"),
    ],
)
def test_mistakes_are_one_line(options: list[str], message: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["reproduce", "--quick", "--out", str(tmp_path / "report"), *options])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert not (tmp_path / "report" / "index.html").exists()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app, ["reproduce", "--quick", "--data", str(tmp_path), "--out", str(tmp_path / "report"), "--only", "exactness"]
    )
    assert result.exit_code == 2 and "PROTEINS.npz is missing" in " ".join(result.output.split())


def test_accuracy_alone(tmp_path: Path) -> None:
    out = tmp_path / "report"
    result = CliRunner().invoke(app, ["reproduce", "--data", str(tmp_path), "--out", str(out), "--only", "accuracy"])
    assert result.exit_code == 0, result.output
    assert "76.9 ± 3.9" in (out / "index.html").read_text()


def test_lines_where_there_is_no_terminal(tmp_path: Path) -> None:
    out = tmp_path / "report"
    result = CliRunner().invoke(app, ["reproduce", "--data", str(tmp_path), "--out", str(out), "--only", "accuracy"])
    lines = result.output.splitlines()
    assert lines[0] == "Measuring accuracy; a line follows for each measurement."
    assert re.fullmatch(r" *\d+ s  accuracy", lines[1]) and lines[2].startswith("Wrote"), lines
