"""Where kernels are kept."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from enfa import cache

NAMES = ("ENFA_CACHE", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "TRITON_CACHE_DIR")


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ENFA_CACHE", str(tmp_path / "own"))


def test_one_folder_unless_the_user_has_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert (
        cache.numba_folder() == tmp_path / "own" / f"numba-{numba.__version__}"
        and cache.triton_folder() == tmp_path / "own" / "triton"
    )
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert cache.numba_folder() is None and cache.triton_folder() is not None
    monkeypatch.delenv("ENFA_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.cache_folder() == tmp_path / "xdg" / "enfa"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.cache_folder() == Path("~/.cache/enfa").expanduser()


def test_a_folder_that_cannot_be_written_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ENFA_CACHE", str(tmp_path / "file"))
    assert cache.numba_folder() is None and cache.triton_folder() is None
    with cache.triton_in_folder():
        assert "TRITON_CACHE_DIR" not in os.environ


def test_triton_is_told_only_while_it_compiles(tmp_path: Path) -> None:
    with cache.triton_in_folder():
        assert os.environ["TRITON_CACHE_DIR"] == str(tmp_path / "own" / "triton")
    assert "TRITON_CACHE_DIR" not in os.environ


def test_kernels_of_numba_are_kept_and_found_again(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import numba\nfrom enfa.cache import compiled_kernels, numba_kernel\n"
        "@numba_kernel\ndef ours(x):\n    return x + 1\n"
        "assert numba.config.CACHE_DIR == '' and ours(1) == 2 and compiled_kernels()['numba'] == 1\n"
        "print(sum(ours.stats.cache_hits.values()))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(cache.__file__).parents[1])}
    for hits in ("0", "1"):
        command = [sys.executable, "mine.py"]
        result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert result.stdout.strip() == hits, result.stderr
    assert list((tmp_path / "own").rglob("mine.ours*.nbc")) and not list(tmp_path.glob("__pycache__/*.nbc"))
