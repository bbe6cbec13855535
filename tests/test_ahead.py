import inspect
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from enfa import ahead

LISTING = runpy.run_path(str(Path(__file__).resolve().parents[1] / "benchmarks" / "kernels.py"))


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Nothing is kept; processes that are started do as they are told."""

    def told(what: str) -> Path:
        monkeypatch.setattr(sys, "executable", what)
        mark = ahead._mark()
        assert mark is not None and not mark.exists()
        return mark

    monkeypatch.setenv("ENFA_CACHE", str(tmp_path))
    monkeypatch.setenv("ENFA_AHEAD", "1")
    monkeypatch.setattr(ahead, "_done", False)
    monkeypatch.setattr(ahead, "_cores", lambda: 2)
    ahead._mark.cache_clear()
    yield told
    ahead._mark.cache_clear()
    assert not ahead._begun


def test_every_kernel_is_in_one_share_with_all_its_types() -> None:
    for count in (1, 2, 5):
        found = ahead.shares(count)
        assert sorted(str(kernel) for share in found for kernel in share) == sorted(map(str, ahead.kernels())) and all(found)
        names = [{kernel["name"] for kernel in share} for share in found]
        assert sum(map(len, names)) == len(set.union(*names))
    halves = [sum(kernel["seconds"] for kernel in share) for share in ahead.shares(2)]
    assert max(halves) < 1.2 * min(halves)


def test_types_are_those_of_the_functions() -> None:
    for kernel in ahead.kernels():
        function = ahead._found(kernel["name"])
        assert len(inspect.signature(function.py_func).parameters) == len(kernel["types"])
        assert [LISTING["written"](ahead.parsed(kind)) for kind in kernel["types"]] == kernel["types"]


def test_what_was_compiled_is_not_compiled_again(cold: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    mark = cold("true")
    ahead.begin()
    assert len(ahead._begun) == 2
    ahead.ready()
    assert mark.exists()
    monkeypatch.setattr(ahead, "_done", False)
    ahead.begin()
    assert not ahead._begun and ahead._done


def test_processes_that_fail_are_no_error(cold: Callable[[str], Path]) -> None:
    mark = cold("false")
    ahead.ready()
    assert not mark.exists() and ahead._done


def test_processes_that_hang_are_no_error(cold: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asleep = tmp_path / "asleep"
    asleep.write_text("#!/bin/sh\nexec sleep 60\n")
    asleep.chmod(0o755)
    mark = cold(str(asleep))
    monkeypatch.setattr(ahead, "PATIENCE", 0.05)
    ahead.begin()
    begun = list(ahead._begun)
    ahead.ready()
    assert not mark.exists() and [process.wait() for process in begun] == [-15, -15]


def test_nothing_is_begun_where_nobody_wants_it(cold: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    cold("false")
    for name, value in (("ENFA_AHEAD", "0"), ("NUMBA_CACHE_DIR", "there"), ("LOCAL_RANK", "1")):
        ahead._mark.cache_clear()
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert ahead._mark() is None
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    ahead._mark.cache_clear()
    assert ahead._mark() is None


def test_a_python_that_is_not_there_is_no_error(cold: Callable[[str], Path]) -> None:
    mark = cold("/nonexistent/python")
    ahead.ready()
    assert not mark.exists() and ahead._done


def test_a_folder_that_is_gone_is_no_error(cold: Callable[[str], Path], tmp_path: Path) -> None:
    mark = cold("true")
    ahead.begin()
    shutil.rmtree(tmp_path / "numba")
    ahead.ready()
    assert not mark.exists() and ahead._done


def test_nothing_of_the_folder_that_it_runs_in_is_imported(
    cold: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mark = cold(sys.executable)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "platform.py").write_text("raise SystemExit(3)\n")
    monkeypatch.setattr(ahead, "MOST", 1)
    ahead.begin()
    for process in ahead._begun:
        with pytest.raises(subprocess.TimeoutExpired):  # it is at work, and has not ended at once
            process.wait(1)
        process.kill()
    ahead.ready()
    assert not mark.exists()


def test_a_kernel_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    count = len({kernel["name"] for kernel in ahead.kernels()})
    monkeypatch.setenv("ENFA_CACHE", str(tmp_path))
    subprocess.run([sys.executable, "-m", "enfa.ahead", str(count - 1), str(count)], check=True)
    kept = {path.name.split("-")[0] for path in tmp_path.rglob("*.nbc")}
    assert f"_{ahead.shares(count)[-1][0]['name'].split('._')[1]}" in kept


@pytest.mark.long
def test_the_list_is_what_most_runs_call() -> None:
    known = [{key: kernel[key] for key in ("name", "types")} for kernel in ahead.kernels()]
    assert sorted(map(str, known)) == sorted(map(str, LISTING["common"]()))
