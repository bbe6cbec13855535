"""Results go to standard output, and all else to standard error."""

import subprocess
import sys
from pathlib import Path

import pytest
from paths import paths_in


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    return [str(paths_in(tmp_path)), f"out={tmp_path}", "name=paths", "accelerator=cpu"]


def _enfa(*arguments: str, **options: int) -> subprocess.Popen[str]:
    given: dict[str, int] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen([sys.executable, "-m", "enfa", *arguments], text=True, **given)


@pytest.mark.parametrize("both", [False, True])
def test_a_reader_that_goes_away_ends_no_training(both: bool, paths: list[str], tmp_path: Path) -> None:
    errors = subprocess.STDOUT if both else subprocess.DEVNULL
    training = _enfa("train", *paths, "epochs=2", "--ensemble", "2", stderr=errors)
    assert training.stdout is not None
    training.stdout.close()
    assert training.wait() == 0
    assert (tmp_path / "paths" / "ensemble.json").is_file()


def test_progress_is_no_result_and_a_run_of_an_ensemble_is_called_one(paths: list[str]) -> None:
    out, errors = _enfa("train", *paths, "epochs=1", "--ensemble", "2").communicate()
    assert "compiling" in errors and "Epoch" in errors
    assert [line.split(":")[0] for line in out.splitlines()[:2]] == ["seed 0", "seed 1"]
    out, errors = _enfa("test", *paths, "seed=1").communicate()
    assert out.startswith("test score: accuracy") and "fold-0-seed-1 is one of the ensemble" in errors
