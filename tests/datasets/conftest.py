"""The real data, where it is there, and a network that never is."""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

DATA = Path(os.environ.get("ENFA_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Downloads fail at once, whatever the machine; only ``file:`` addresses work."""
    real = urllib.request.urlopen

    def urlopen(url: str, *args: object, **options: object) -> object:
        if url.startswith("file:"):
            return real(url, *args, **options)
        raise urllib.error.URLError("no network in tests")

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of compact real datasets."""
    if not (DATA / "lay_out.py").is_file():
        pytest.skip(f"no real data in {DATA} (set ENFA_DATA)")
    return DATA


@pytest.fixture(scope="session")
def laid_out(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Writes the raw files of a dataset once per session; returns the root to load from."""
    root = tmp_path_factory.mktemp("raw")
    done: set[str] = set()

    def write(name: str) -> Path:
        if name not in done:
            command = [sys.executable, str(data / "lay_out.py"), str(root), name]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            done.add(name)
        return root

    return write


@pytest.fixture
def ogb(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes ogb importable without its version check over the network; skips where it is missing."""
    monkeypatch.setitem(sys.modules, "outdated", None)
    pytest.importorskip("ogb", reason="ogb is not installed")
