import json
import subprocess
import sys
from pathlib import Path

import pytest

from enfa.report.measure.store import Store
from enfa.report.settings import TINY

MACHINE = {"cpu": "one"}


def _keys(folder: Path) -> dict[str, int]:
    return json.loads((folder / "storage.json").read_text())["results"]


@pytest.mark.parametrize("fresh", [False, True])
def test_two_that_measure_at_the_same_time_keep_what_the_other_has(tmp_path: Path, fresh: bool) -> None:
    one, other = (Store(tmp_path, TINY, MACHINE, fresh) for _ in range(2))
    other.section("storage")  # both have seen an empty folder
    one.compute("storage", "a", lambda: 1)
    other.compute("storage", "b", lambda: 2)
    one.compute("storage", "c", lambda: 3)
    assert _keys(tmp_path) == {"a": 1, "b": 2, "c": 3}
    assert other.compute("storage", "c", lambda: 4) == 3, "it was measured twice"
    assert one.measured == {("storage", "a"), ("storage", "c")} and other.measured == {("storage", "b")}


def test_fresh_discards_what_was_there(tmp_path: Path) -> None:
    Store(tmp_path, TINY, MACHINE).compute("storage", "a", lambda: 1)
    again = Store(tmp_path, TINY.to(seed=1), MACHINE, fresh=True)
    again.compute("storage", "b", lambda: 2)
    again.compute("storage", "c", lambda: 3)
    assert _keys(tmp_path) == {"b": 2, "c": 3}


def test_results_of_other_settings_are_not_written_over_either(tmp_path: Path) -> None:
    one = Store(tmp_path, TINY, MACHINE)
    one.section("storage")
    Store(tmp_path, TINY.to(seed=1), MACHINE).compute("storage", "a", lambda: 1)
    with pytest.raises(ValueError, match=r"storage.json was measured with seed = 1, this is 0; choose another --out"):
        one.compute("storage", "b", lambda: 2)
    assert _keys(tmp_path) == {"a": 1}


def test_what_is_measured_again_takes_the_place_of_what_was_there(tmp_path: Path) -> None:
    for value in (1, 2):
        Store(tmp_path, TINY, MACHINE).compute("storage", "a", lambda v=value: v, again=True)  # type: ignore[misc]
    assert _keys(tmp_path) == {"a": 2}


def test_processes_lose_nothing(tmp_path: Path) -> None:
    """Each writes often, while the other does."""
    script = """
import sys
from pathlib import Path
from enfa.report.measure.store import Store
from enfa.report.settings import TINY
store = Store(Path(sys.argv[1]), TINY, {"cpu": "one"})
for number in range(40):
    store.compute("storage", f"{sys.argv[2]} {number}", lambda: number)
"""
    both = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path), name]) for name in "ab"]
    assert [process.wait() for process in both] == [0, 0]
    assert len(_keys(tmp_path)) == 80 and [path.name for path in tmp_path.iterdir()] == ["storage.json"]
