"""Left-overs of writers that were killed are removed, and nothing else."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import enfa.atomic
from enfa.atomic import alone_in, write_atomically

fcntl = pytest.importorskip("fcntl")

WRITER = """
import runpy, sys, time
from pathlib import Path

def parts():
    yield b"half"
    print("writing", flush=True)
    time.sleep(60)

# from its file: it needs nothing else of the package, whose import takes seconds
runpy.run_path(sys.argv[2])["write_atomically"](Path(sys.argv[1]), parts())
"""


def _writer(path: Path) -> subprocess.Popen[str]:
    """A process in the middle of writing."""
    command = [sys.executable, "-c", WRITER, str(path), str(enfa.atomic.__file__)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "writing\n"
    return process


def test_what_a_killed_writer_left_is_removed_by_the_next_to_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "x.enfa"
    killed, alive = _writer(path), _writer(path)
    try:
        assert len(list(tmp_path.glob("*.partial"))) == 2  # the second writer left the first one's file alone
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        others = [tmp_path / name for name in ("y.enfa.0123456789ab.partial", "x.enfa.partial", "x.enfa.0.partial")]
        for other in others:
            other.write_bytes(b"not ours")
        write_atomically(path, [b"a", b"b"])
        left = set(tmp_path.glob("*.partial")) - set(others)
        assert path.read_bytes() == b"ab" and len(left) == 1 and all(other.exists() for other in others)
    finally:
        alive.kill()
        alive.wait()
    write_atomically(path, [b"c"])
    assert path.read_bytes() == b"c" and set(tmp_path.iterdir()) == {path, *others}


def test_a_file_removed_before_it_was_locked_is_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, flock = tmp_path / "x.enfa", fcntl.flock
    taken: list[Path] = []

    def late(file: object, how: int) -> None:
        if not taken:
            taken.extend(tmp_path.glob("*.partial"))
            taken[0].unlink()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    write_atomically(path, [b"all"])
    assert taken and path.read_bytes() == b"all" and list(tmp_path.iterdir()) == [path]


def test_without_locks_left_overs_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(file: object, how: int) -> None:
        raise OSError("not here")

    monkeypatch.setattr(fcntl, "flock", none)
    left = tmp_path / "x.enfa.0123456789ab.partial"
    left.touch()
    write_atomically(tmp_path / "x.enfa", [b"all"])
    assert left.exists() and (tmp_path / "x.enfa").read_bytes() == b"all"


def test_a_folder_is_one_process_s_at_a_time(tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="this system has no such locks")
    script = """
import sys
from pathlib import Path
from enfa.atomic import alone_in
with alone_in(Path(sys.argv[1])):
    print("in")
"""
    with alone_in(tmp_path):
        other = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(3)
    assert other.communicate()[0] == "in\n" and not list(tmp_path.iterdir())


def test_without_locks_nobody_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enfa.atomic, "fcntl", None)
    with alone_in(tmp_path), alone_in(tmp_path):
        pass
