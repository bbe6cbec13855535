"""A full disk: one line that names the file, and nothing half written is left behind."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from enfa.cli.app import app
from enfa.training.checkpoint import load_checkpoint
from enfa.training.disk import write_text
from enfa.training.settings.folder import BEST, LAST


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Makes a disk of so many kilobytes."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def make(kilobytes: int) -> Path:
        command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)]
        if os.getuid() or subprocess.run(command, capture_output=True).returncode:
            pytest.skip("no permission to mount a disk")
        return folder

    yield make
    subprocess.run(["umount", str(folder)], capture_output=True)


def whole(folder: Path) -> list[str]:
    """The files of a run, none of which is a part of one."""
    for path in folder.glob("*.ckpt"):
        load_checkpoint(path)
    if (folder / "config.yaml").exists():
        assert "dataset" in yaml.safe_load((folder / "config.yaml").read_text())
    if (folder / "metrics.csv").exists():
        lines = (folder / "metrics.csv").read_text().splitlines()
        assert lines[0] == "epoch,lr,loss,score" and all(line.count(",") == 3 for line in lines)
    return sorted(p.name for p in folder.iterdir() if not p.name.startswith("events"))


# too small for its first file, for the first checkpoint, for the second one, for a new one beside the old ones
@pytest.mark.parametrize("kilobytes", [0, 8, 90, 140])
def test_training_on_a_full_disk(disk: Callable[[int], Path], config_file: Callable[..., Path], kilobytes: int) -> None:
    folder = disk(kilobytes + 4)  # at least one page, or there is no limit
    path = config_file(out=str(folder), epochs=6)
    result = CliRunner().invoke(app, ["train", str(path), "--no-progress"])
    lines = [line for line in result.stderr.splitlines() if line]
    assert result.exit_code == 2 and len(lines) == 1, result.output
    assert str(folder) in lines[0] and "No space left on device" in lines[0], lines[0]
    run = folder / "tiny" / "fold-0-seed-0"
    found = whole(run) if run.exists() else []
    assert set(found) <= {"config.yaml", "hparams.yaml", "metrics.csv", BEST, LAST}, found
    assert (BEST in found) == (kilobytes >= 90) and (LAST in found) == (kilobytes >= 140)
    subprocess.run(["mount", "-o", "remount,size=10m", str(folder)], check=True)
    more = CliRunner().invoke(app, ["train", str(path), "--no-progress", *["--resume"] * (LAST in found)])
    assert more.exit_code == 0, more.output
    assert len(load_checkpoint(run / LAST)["enfa"]["curve"]) == 6


def test_results_and_predictions_on_a_full_disk(
    disk: Callable[[int], Path], config_file: Callable[..., Path], npz: Path, tmp_path: Path
) -> None:
    folder, path = disk(4), config_file(epochs=1)
    (folder / "filler").write_bytes(b"\0" * 4096)
    commands = (
        ["sweep", path, "--folds", "0", "--results", folder / "r", "--no-progress"],
        ["predict", tmp_path / "runs" / "tiny" / "fold-0-seed-0" / LAST, npz, "--out", folder / "r" / "p.csv"],
        ["train", path, f"cache={folder}/r/c.enfa", "name=other", "--no-progress"],
    )
    for command in commands:
        result = CliRunner().invoke(app, [str(word) for word in command])
        lines = [line for line in result.stderr.splitlines() if line]
        assert result.exit_code == 2 and len(lines) == 1, result.output
        assert lines[0].startswith(f"Error: {folder / 'r'}") and lines[0].endswith("No space left on device"), lines[0]
        assert [p.name for p in folder.rglob("*") if p.is_file()] == ["filler"]


def test_the_error_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_text(tmp_path / "a.txt", "old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*a\.txt'"):
        write_text(tmp_path / "a.txt", "new")
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"] and (tmp_path / "a.txt").read_text() == "old"


def test_a_folder_that_cannot_be_written_is_told_by_the_file_asked_for() -> None:
    from enfa.datasets import to_npz
    from enfa.testing import random_graphs

    if not Path("/proc").is_dir():
        pytest.skip("needs /proc, a folder in which no file can be made")
    for name, write in (("x.csv", lambda path: write_text(path, "")), ("x.npz", lambda path: to_npz(random_graphs(1), path))):
        with pytest.raises(OSError) as caught:
            write(Path("/proc") / name)
        assert caught.value.filename == f"/proc/{name}"
