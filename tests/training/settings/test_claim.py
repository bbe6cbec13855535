"""Two processes that would train into one folder: one does."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from enfa.training import fit, read_config
from enfa.training.settings import claim
from enfa.training.settings.folder import BEST, LAST, folder_of

SMALL = {"num_layers": 1, "hidden_channels": 4}
HOLD = """
import sys
from enfa.training import read_config
from enfa.training.settings.claim import claimed
with claimed(read_config(sys.argv[1]), resume=sys.argv[2] == "resume"):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("resume", [False, True])
def test_the_second_is_refused_until_the_first_has_ended(config_file: Callable[..., Path], resume: bool) -> None:
    path = config_file(**SMALL, epochs=1)
    config = read_config(path)
    if resume:
        fit(config, progress=False)
    command = [sys.executable, "-c", HOLD, str(path), "resume" if resume else "anew"]
    process = subprocess.Popen(command, stdin=-1, stdout=-1, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        before = {file: file.read_bytes() for file in folder_of(config).iterdir()}
        with pytest.raises(ValueError, match=rf"fold-0-seed-0 is being trained into by another process \({process.pid}, as"):
            fit(config, resume=resume, progress=False)
        assert {file: file.read_bytes() for file in folder_of(config).iterdir()} == before
    finally:
        process.kill()  # which removes nothing
        process.communicate()
    fit(config, resume=resume, progress=False)
    assert (folder_of(config) / BEST).exists() and not (folder_of(config) / claim.RUNNING).exists()


def test_two_at_the_same_moment(config_file: Callable[..., Path]) -> None:
    path = config_file(**SMALL, epochs=300)
    command = [sys.executable, "-m", "enfa", "train", str(path), "--no-progress"]
    both = [subprocess.Popen(command, stdout=-1, stderr=-1, text=True) for _ in range(2)]
    errors = [process.communicate(timeout=120)[1] for process in both]
    codes = [process.returncode for process in both]
    assert sorted(codes) == [0, 2], errors
    lines = errors[codes.index(2)].splitlines()
    assert len(lines) == 1 and ("by another process" in lines[0] or "holds a run already" in lines[0]), lines
    assert not errors[codes.index(0)]


def test_a_run_that_ended_just_before_is_kept(config_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    config = read_config(config_file(**SMALL, epochs=1))
    holding = claim.holding

    def late(path: Path) -> object:
        path.with_name(LAST).write_text("another's")
        return holding(path)

    monkeypatch.setattr(claim, "holding", late)
    with pytest.raises(ValueError, match="holds a run already"):
        fit(config, progress=False)
    assert (folder_of(config) / LAST).read_text() == "another's"


def test_a_run_that_could_not_begin_leaves_no_folder(config_file: Callable[..., Path]) -> None:
    config = read_config(config_file(**SMALL, fold=99))
    with pytest.raises(ValueError, match="folds 0 to 9, got fold 99"):
        fit(config, progress=False)
    assert not Path(config.out).exists()
