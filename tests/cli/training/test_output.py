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


NO_MARK = """
from torch import nn
from torch_geometric.nn import GINConv

class NoMark(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        width = in_channels if isinstance(in_channels, int) else len(in_channels)
        self.conv = GINConv(nn.Linear(width, out_channels))

    def forward(self, bag):
        return bag.pool(bag.pool(bag.propagate(self.conv, bag.x.float())), "mean")
"""


def test_marks_that_a_model_of_one_s_own_does_not_read_are_told_in_a_line(paths: list[str], tmp_path: Path) -> None:
    (tmp_path / "no_mark.py").write_text(NO_MARK)
    _, errors = _enfa("train", *paths, "epochs=1", "--code", str(tmp_path / "no_mark.py"), "model=NoMark").communicate()
    told = [line for line in errors.splitlines() if "only marks nodes, and NoMark does not read the marks" in line]
    assert len(told) == 1 and told[0].startswith("Warning: NodeMarking(")
    assert errors.splitlines()[0] == f"training on {paths[0]} (fold 0, seed 0) with node_marking, NoMark"
