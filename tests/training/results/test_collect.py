import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from enfa.training import Config
from enfa.training.results.collect import Results
from enfa.training.results.record import Record

RECORD = Record(
    {}, 0, 0, "accuracy", "all epochs", 3, [0.0] * 3, [0.5, 0.8, 0.6], 1, 0.8, None, "0.1.0", "2.0", "a CPU", 12.0
)  # fmt: skip
CONFIG = Config.make({"dataset": "CSL", "name": "n", "epochs": 3})
ADD = """
import sys
from dataclasses import replace
from pathlib import Path
from test_collect import CONFIG, RECORD, Results
results = Results.open(Path(sys.argv[1]), CONFIG)
print("ready", flush=True)
sys.stdin.readline()
for fold in range(20):
    results.add(replace(RECORD, fold=fold, seed=int(sys.argv[2])))
"""


def test_runs_that_another_has_filed_since_stay(tmp_path: Path) -> None:
    one, two = (Results.open(tmp_path, CONFIG) for _ in range(2))
    one.add(RECORD)
    two.add(replace(RECORD, fold=1, valid=0.7))
    one.add(replace(RECORD, fold=2))
    one.add(replace(RECORD, valid=0.9))  # in place of an earlier one
    assert [(r.fold, r.valid) for r in one.records] == [(0, 0.9), (1, 0.7), (2, 0.8)]
    assert [(r.fold, r.valid) for r in Results.load(one.path).records] == [(0, 0.9), (1, 0.7), (2, 0.8)]


def test_runs_of_other_code_are_told_apart(tmp_path: Path) -> None:
    results = Results.open(tmp_path, CONFIG)
    for fold, code in enumerate([{"net.py": "one"}, {"net.py": "one"}, {"net.py": "two"}]):
        results.add(replace(RECORD, fold=fold, code=code))
        summary = results.summary()
        assert summary is not None and bool(summary.notes) == (fold == 2)
    assert summary.notes == ("made with 2 versions of net.py",)


def test_a_model_that_is_not_there_is_not_needed(tmp_path: Path) -> None:
    """Its own defaults stand in the file."""
    path, there = tmp_path / "n.json", {**CONFIG.to_dict(), "model": "Net", "conv": "Mine", "jk": None}
    path.write_text(json.dumps({"config": there, "runs": []}))
    assert Results.load(path).config.to_dict() == there
    with pytest.raises(ValueError, match=r"n.json holds runs with other settings .*model is 'Net' there and 'ds' here"):
        Results.open(tmp_path, CONFIG)
    path.write_text(json.dumps({"config": {**there, "epochs": -1}, "runs": []}))
    with pytest.raises(ValueError, match="Expected epochs to be an integer >= 1, got -1"):
        Results.load(path)


def test_two_processes_lose_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ADD, str(tmp_path / "results")]
    processes = [
        subprocess.Popen([*command, seed], cwd=Path(__file__).parent, stdin=-1, stdout=-1, text=True, bufsize=1)
        for seed in "01"
    ]
    for process in processes:  # both have opened the file, before either writes it
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
    assert [process.wait(120) for process in processes] == [0, 0]
    runs = json.loads((tmp_path / "results" / "n.json").read_text())["runs"]
    assert [(r["seed"], r["fold"]) for r in runs] == [(seed, fold) for seed in (0, 1) for fold in range(20)]
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["n.json"]
