"""A command that has used a GPU ends at once, but for what Python would have waited for."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import atexit, sys, threading, time, types
from pathlib import Path
folder = Path(sys.argv.pop(1))
used = types.SimpleNamespace(is_initialized=lambda: {used})
sys.modules["torch"] = types.SimpleNamespace(cuda=used)  # nothing below imports it
class Held:
    def __del__(self): (folder / "taken down").touch()
held = Held()
def late():
    time.sleep(0.3)
    (folder / "thread").touch()
threading.Thread(target=late).start()
atexit.register((folder / "at exit").touch)
from enfa.cli import main
main()
"""


@pytest.mark.parametrize(("arguments", "code"), [(["--help"], 0), (["--no-such-option"], 2)])
@pytest.mark.parametrize("used", [True, False])
def test_the_end_of_a_command(used: bool, arguments: list[str], code: int, tmp_path: Path) -> None:
    script = SCRIPT.format(used=used)
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path), *arguments], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert ("Usage" in done.stdout) if code == 0 else ("No such option" in done.stderr)
    left = {"thread", "at exit"} if used else {"thread", "at exit", "taken down"}
    assert {path.name for path in tmp_path.iterdir()} == left
