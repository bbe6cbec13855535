import inspect
import json
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numba
import pytest
from paths import paths_in

from enfa import ahead
from enfa.cores import cores
from enfa.training.settings import kernels as settings
from enfa.training.settings.config import Config

LISTING = runpy.run_path(str(Path(__file__).resolve().parents[1] / "benchmarks" / "kernels.py"))


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Nothing is kept; processes that are started do as they are told."""

    def told(what: str) -> Path:
        monkeypatch.setattr(sys, "executable", what)
        mark = ahead.GROUPS["rows"].mark()
        assert mark is not None and not mark.exists()
        return mark

    monkeypatch.setenv("ENFA_CACHE", str(tmp_path))
    monkeypatch.setenv("ENFA_AHEAD", "1")
    monkeypatch.setattr(ahead, "GROUPS", {name: ahead.Group(name) for name in ahead.GROUPS})
    monkeypatch.setattr(ahead, "cores", lambda: 2)
    yield told
    assert not any(group.begun for group in ahead.GROUPS.values())


@pytest.mark.parametrize("group", ahead.GROUPS)
def test_every_kernel_is_in_one_share_with_all_its_types(group: str) -> None:
    for count in (1, 2, 4):
        found = ahead.shares(group, count)
        assert sorted(str(k) for share in found for k in share) == sorted(map(str, ahead.kernels(group))) and all(found)
        names = [{kernel["name"] for kernel in share} for share in found]
        assert sum(map(len, names)) == len(set.union(*names))


def test_no_two_processes_write_the_code_of_one_kernel(cold: Callable[[str], Path]) -> None:
    names = {group: {kernel["name"] for kernel in ahead.kernels(group)} for group in ahead.GROUPS}
    assert not names["rows"] & (names["batches"] | names["cut"]) and names["batches"] & names["cut"]
    assert not names["file"] & set.union(*(names[group] for group in names if group != "file"))
    cold("true")
    ahead.begin("batches", "cut")  # which have some in common: one of them is begun
    assert ahead.GROUPS["cut"].begun and not ahead.GROUPS["batches"].begun
    ahead.ready("rows", "batches", "cut")


def test_shares_take_about_as_long() -> None:
    halves = [sum(kernel["seconds"] for kernel in share) for share in ahead.shares("rows", 2)]
    assert max(halves) < 1.2 * min(halves)


def test_types_are_those_of_the_functions() -> None:
    for kernel in ahead.kernels():
        function = ahead._found(kernel["name"])
        assert len(inspect.signature(function.py_func).parameters) == len(kernel["types"])
        assert json.loads(json.dumps([LISTING["written"](ahead.parsed(kind)) for kind in kernel["types"]])) == kernel["types"]


def test_what_was_compiled_is_not_compiled_again(cold: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    mark = cold("true")
    ahead.begin()
    assert len(ahead.GROUPS["rows"].begun) == 2
    ahead.ready("rows")
    assert mark.exists()
    again = ahead.Group("rows")
    again.begin()
    assert not again.begun and again.done


def test_what_nothing_asks_for_is_not_compiled(cold: Callable[[str], Path]) -> None:
    cold("true")
    ahead.begin("cut")
    rows, batches, cut = (ahead.GROUPS[name] for name in ("rows", "batches", "cut"))
    assert rows.begun and cut.begun and not batches.begun
    ahead.ready("batches", "cut")
    marks = [group.mark() for group in (rows, batches, cut)]
    assert [mark is not None and mark.exists() for mark in marks] == [False, False, True] and rows.begun
    ahead.ready("rows")


@pytest.mark.parametrize("conv, group", [("gin", "cut"), ("gine", "batches")])
def test_a_run_on_a_gpu_asks_for_more(conv: str, group: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(settings, "DRIVER", tmp_path)
    assert settings.groups_of(Config(dataset="CSL", conv=conv)) == (group,)
    assert settings.groups_of(Config(dataset="CSL", conv=conv, accelerator="cpu")) == ()
    monkeypatch.setattr(settings, "DRIVER", tmp_path / "none")
    assert settings.groups_of(Config(dataset="CSL", conv=conv)) == ()


@pytest.mark.parametrize("place", ["cache", "shards"])
def test_a_run_that_keeps_rows_asks_for_files(place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(settings, "DRIVER", tmp_path / "none")
    assert settings.groups_of(Config(dataset="CSL", **{place: "kept"})) == ("file",)  # type: ignore[arg-type]


@pytest.mark.long
@pytest.mark.skipif(cores() < 2, reason="one core: there are no processes that compile ahead")
def test_a_run_that_finds_its_rows_compiles_nothing(tmp_path: Path) -> None:
    """The run that writes them has compiled what reads them."""
    data, kept = paths_in(tmp_path), tmp_path / "kernels"
    found = []
    for run in ("first", "second"):
        given = [str(data), f"out={tmp_path / run}", f"cache={tmp_path / 'rows'}", "epochs=1", "accelerator=cpu"]
        env = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | {"ENFA_CACHE": str(kept), "ENFA_AHEAD": "1"}
        subprocess.run([sys.executable, "-m", "enfa", "train", *given, "--no-progress"], env=env, check=True)
        found.append({path.name for path in kept.rglob("*.nbc")})
    assert found[0] and found[0] == found[1]


def test_processes_that_fail_are_no_error(cold: Callable[[str], Path]) -> None:
    mark = cold("false")
    ahead.begin()
    ahead.ready("rows")
    assert not mark.exists() and ahead.GROUPS["rows"].done


def test_processes_that_hang_are_no_error(cold: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asleep = tmp_path / "asleep"
    asleep.write_text("#!/bin/sh\nexec sleep 60\n")
    asleep.chmod(0o755)
    mark = cold(str(asleep))
    monkeypatch.setattr(ahead, "PATIENCE", 0.05)
    ahead.begin()
    begun = list(ahead.GROUPS["rows"].begun)
    ahead.ready("rows")
    assert not mark.exists() and [process.wait() for process in begun] == [-15, -15]


def test_nothing_is_begun_where_nobody_wants_it(cold: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    cold("false")
    group = ahead.GROUPS["rows"]
    for name, value in (("ENFA_AHEAD", "0"), ("NUMBA_CACHE_DIR", "there"), ("LOCAL_RANK", "1")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert group.mark() is None
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert group.mark() is None


def test_a_python_that_is_not_there_is_no_error(cold: Callable[[str], Path]) -> None:
    mark = cold("/nonexistent/python")
    ahead.begin()
    ahead.ready("rows")
    assert not mark.exists() and ahead.GROUPS["rows"].done


def test_a_folder_that_is_gone_is_no_error(cold: Callable[[str], Path], tmp_path: Path) -> None:
    mark = cold("true")
    ahead.begin()
    shutil.rmtree(tmp_path / f"numba-{numba.__version__}")
    ahead.ready("rows")
    assert not mark.exists() and ahead.GROUPS["rows"].done


def test_nothing_of_the_folder_that_it_runs_in_is_imported(
    cold: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mark = cold(sys.executable)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "platform.py").write_text("raise SystemExit(3)\n")
    monkeypatch.setattr(ahead, "MOST", 1)
    ahead.begin()
    for process in ahead.GROUPS["rows"].begun:
        with pytest.raises(subprocess.TimeoutExpired):  # it is at work, and has not ended at once
            process.wait(1)
        process.kill()
    ahead.ready("rows")
    assert not mark.exists()


@pytest.mark.parametrize("group", ahead.GROUPS)
def test_a_kernel_is_kept(group: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    count = len({kernel["name"] for kernel in ahead.kernels(group)})
    monkeypatch.setenv("ENFA_CACHE", str(tmp_path))
    subprocess.run([sys.executable, "-m", "enfa.ahead", group, str(count - 1), str(count)], check=True)
    kept = {path.name.split("-")[0] for path in tmp_path.rglob("*.nbc")}
    assert f"_{ahead.shares(group, count)[-1][0]['name'].split('._')[1]}" in kept


@pytest.mark.long
def test_the_list_is_what_most_runs_call() -> None:
    known = [{key: kernel[key] for key in ("name", "types", "for")} for kernel in ahead.kernels()]
    assert sorted(map(str, known)) == sorted(map(str, LISTING["common"]()))
