"""Two processes, and what one of them holds."""

import subprocess
import sys
from pathlib import Path

import pytest

from enfa import locks
from enfa.locks import alone_in, holding

HOLD = """
import sys
from pathlib import Path
from enfa.locks import holding
with holding(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""
ADD = """
import sys
from pathlib import Path
from enfa.locks import alone_in
path = Path(sys.argv[1])
for _ in range(300):
    with alone_in(path.parent):
        path.write_text(str(int(path.read_text()) + 1))
"""


def start(code: str, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code, str(path)], stdin=-1, stdout=-1, text=True)


def test_one_at_a_time(tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="this system has no such locks")
    count = tmp_path / "count"
    count.write_text("0")
    processes = [start(ADD, count) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert count.read_text() == "900" and [path.name for path in tmp_path.iterdir()] == ["count"]


def test_what_is_held_is_said_and_ends_with_its_process(tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="this system has no such locks")
    path = tmp_path / "lock"
    process = start(HOLD, path)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    with holding(path) as ours:
        assert not ours and path.read_text() == str(process.pid)
    process.kill()
    process.communicate()
    assert path.exists()  # and keeps nobody out
    with holding(path) as ours:
        assert ours
    assert not path.exists()


def test_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "fcntl", None)
    path = tmp_path / "lock"
    with holding(path) as ours, holding(path) as other:
        assert ours and not other
    assert not path.exists()
    with alone_in(tmp_path), alone_in(tmp_path):  # nobody waits
        pass
