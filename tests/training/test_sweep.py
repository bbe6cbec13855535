import json
import multiprocessing
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from enfa.cli.app import app
from enfa.training import Config, read_config
from enfa.training.results.collect import Results
from enfa.training.results.record import Record
from enfa.training.results.table import markdown
from enfa.training.settings.claim import RUNNING
from enfa.training.sweep import _processes, run_sweep

Write = Callable[..., Path]
RECORD = Record(
    {}, 0, 0, "accuracy", "all epochs", 3, [0.0] * 3, [0.5, 0.8, 0.6], 1, 0.8, None, "0.1.0", "2.0", "a CPU", 12.0
)  # fmt: skip


def filed(folder: Path, *records: Record, **settings: object) -> Results:
    results = Results.open(folder, Config.make({"dataset": "CSL", "name": "n", "epochs": 3, **settings}))
    for record in records:
        results.add(record)
    return results


def test_sweep_repeats_nothing(tmp_path: Path, config_file: Callable[..., Path]) -> None:
    args = ["sweep", str(config_file(epochs=2)), "--results", str(tmp_path / "r"), "--no-progress", "--folds", "0-1"]
    first = CliRunner().invoke(app, args)
    assert first.exit_code == 0, first.output
    assert "2 runs to do" in first.output and "fold 1 seed 0: all epochs after 2 epochs" in first.output and "±" in first.output
    text = (tmp_path / "r" / "tiny.json").read_text()
    values = json.loads(text)
    assert [(r["fold"], r["seed"], r["metric"], len(r["score"])) for r in values["runs"]] == [
        (0, 0, "accuracy", 2), (1, 0, "accuracy", 2),
    ]  # fmt: skip
    assert all(run["version"] and run["hardware"] and run["seconds"] > 0 for run in values["runs"])
    assert str(tmp_path / "runs") not in text  # folders of one machine stay out
    again = CliRunner().invoke(app, args)
    assert "0 runs to do, 2 on file" in again.output
    assert (tmp_path / "r" / "tiny.json").read_text() == text
    more = CliRunner().invoke(app, [*args, "--seeds", "0,1"])
    assert "2 runs to do, 2 on file" in more.output
    one = CliRunner().invoke(app, [*args[:-1], "2"])
    assert "1 run to do, 4 on file" in one.output
    other = CliRunner().invoke(app, [*args, "lr=0.5"])
    assert other.exit_code == 2 and "runs with other settings (lr is 0.01 there and 0.5 here)" in other.stderr


def test_a_mistake_in_ones_own_model_is_a_line_of_its_file(
    tmp_path: Path, config_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    code = tmp_path / "broken_in_sweeps.py"
    code.write_text("import enfa\nclass Broken(enfa.DSGNN):\n  def forward(self, bag):\n    return self.nothing\n")
    monkeypatch.setenv("ENFA_CODE", str(code))
    args = ["sweep", str(config_file(model="Broken")), "--folds", "0", "--results", str(tmp_path / "r"), "--no-progress"]
    said = CliRunner().invoke(app, args).output
    assert f"failed: {code}, line 4: AttributeError: 'Broken' object has no attribute 'nothing'" in said


def test_columns_to_learn_are_named_as_for_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    monkeypatch.chdir(tmp_path)
    Path("m.csv").write_text("smiles,long,mass,even\n" + "".join(f"{'C' * n},{n}.5,{n / 8},{n % 2}\n" for n in range(1, 41)))
    small = ["epochs=1", "num_layers=1", "hidden_channels=4", "accelerator=cpu", "threads=1", "--no-progress"]
    command = ["sweep", "m.csv", *small, "--results", "r"]
    result = CliRunner().invoke(app, [*command, "--target", "long", "--target", "mass"])
    assert result.exit_code == 0, result.output
    (run,) = json.loads(Path("r/m.json").read_text())["runs"]
    assert run["targets"] == ["long", "mass"]
    result = CliRunner().invoke(app, [*command, "targets=[long,mass]"])
    assert result.exit_code == 0 and "0 runs to do, 1 on file" in result.output, "the same runs"
    result = CliRunner().invoke(app, [*command, "--target", "short"])
    assert result.exit_code == 2 and "runs with other settings (targets is ['long', 'mass'] there" in result.stderr


def test_scores_in_other_units_are_not_put_beside_these(tmp_path: Path, config_file: Write, make_npz: Write) -> None:
    """Results of a version that standardised no numbers of .npz files."""
    numbers = make_npz(np.random.default_rng(0).normal(size=40), "numbers")
    config = read_config(config_file(dataset=str(numbers), epochs=1))
    Results.open(tmp_path / "r", config).add(replace(RECORD, metric="mae", test=0.5))
    told: list[str] = []
    assert run_sweep([config], [0], [0], 1, tmp_path / "r", None, told.append)[1] == 0, "done, and only looked at"
    with pytest.raises(ValueError, match=r"tiny\.json holds runs of a version that standardised no numbers .*: set name="):
        run_sweep([config], [0, 1], [0], 1, tmp_path / "r", None, told.append)


@pytest.mark.parametrize("jobs", ["1", pytest.param("2", marks=pytest.mark.long)])
def test_a_run_that_fails_is_reported_and_the_others_run(tmp_path: Path, config_file: Callable[..., Path], jobs: str) -> None:
    args = ["sweep", str(config_file(epochs=1)), "--results", str(tmp_path / "r"), "--no-progress", "--jobs", jobs]
    bad = tmp_path / "runs" / "tiny" / "fold-0-seed-0" / "last.ckpt"
    bad.parent.mkdir(parents=True)
    bad.write_text("no checkpoint")
    result = CliRunner().invoke(app, [*args, "--folds", "0-1"])
    assert result.exit_code == 1, result.output
    assert f"tiny fold 0 seed 0: failed: {bad} is damaged" in result.output
    assert "tiny fold 1 seed 0: all epochs after 1 epoch," in result.output
    assert [run["fold"] for run in json.loads((tmp_path / "r" / "tiny.json").read_text())["runs"]] == [1]


HOLD = """
import sys
from pathlib import Path
from enfa.locks import holding
with holding(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("jobs", ["1", pytest.param("2", marks=pytest.mark.long)])
def test_a_run_that_another_process_is_at_has_not_failed(tmp_path: Path, config_file: Callable[..., Path], jobs: str) -> None:
    args = ["sweep", str(config_file(epochs=1)), "--results", str(tmp_path / "r"), "--no-progress", "--jobs", jobs]
    folder = tmp_path / "runs" / "tiny" / "fold-0-seed-0"
    folder.mkdir(parents=True)
    other = subprocess.Popen([sys.executable, "-c", HOLD, str(folder / RUNNING)], stdin=-1, stdout=-1, text=True)
    try:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        result = CliRunner().invoke(app, [*args, "--folds", "0-1"])
    finally:
        other.communicate("\n")
    assert result.exit_code == 0, result.output
    assert f"tiny fold 0 seed 0: left to another process ({other.pid}), which is at it" in result.output
    assert "tiny fold 1 seed 0: all epochs after 1 epoch," in result.output
    assert not list(folder.iterdir())


def test_a_run_that_another_sweep_has_filed_since_is_done(tmp_path: Path, config_file: Callable[..., Path]) -> None:
    config, said = read_config(config_file(epochs=3)), []

    def say(line: str) -> None:
        if not said:  # the runs are planned, and none has begun
            Results.open(tmp_path / "r", config).add(RECORD)
        said.append(line)

    results, failed = run_sweep([config], [0], [0], 1, tmp_path / "r", None, say)
    assert said == ["1 run to do, 0 on file", "tiny fold 0 seed 0: done already, by another process"] and not failed
    assert [len(of.records) for of in results] == [1]  # so the table has it
    assert not (tmp_path / "runs").exists()


def test_an_interrupt_ends_a_sweep(tmp_path: Path, config_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def interrupted(config: Config, **_: object) -> None:
        begun.append(config.fold)
        raise KeyboardInterrupt

    monkeypatch.setattr("enfa.training.attempt.fit", interrupted)
    args = ["sweep", str(config_file(epochs=1)), "--results", str(tmp_path / "r"), "--no-progress", "--folds", "0-1"]
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 130 and "the same command continues" in result.output and begun == [0]


@pytest.mark.long
def test_several_at_once_give_the_same(tmp_path: Path, config_file: Callable[..., Path]) -> None:
    found = []
    for jobs in ("1", "2"):
        path = config_file(f"jobs{jobs}", epochs=1)
        args = ["sweep", str(path), "--results", str(tmp_path / "r"), "--folds", "0-2", "--jobs", jobs, "--no-progress"]
        assert CliRunner().invoke(app, args).exit_code == 0
        runs = json.loads((tmp_path / "r" / f"jobs{jobs}.json").read_text())["runs"]
        found.append([(r["fold"], r["loss"], r["score"]) for r in runs])
    assert found[0] == found[1]


def test_loaders_of_several_at_once_start_their_workers_as_those_of_one_do() -> None:
    with _processes(1) as pool:
        there = pool.submit(eval, "__import__('multiprocessing').get_start_method()").result()
    assert there == multiprocessing.get_start_method()


def test_what_ran_out_of_time_is_not_done_and_goes_on(tmp_path: Path, config_file: Callable[..., Path]) -> None:
    args = ["sweep", str(config_file(epochs=3)), "--results", str(tmp_path / "r"), "--folds", "0", "--no-progress"]
    # long enough to begin the first epoch, over when it ends
    CliRunner().invoke(app, ["train", args[1], "epochs=1", "--no-progress"])
    late = CliRunner().invoke(app, [*args, "--minutes", "0"])
    assert "no time to begin" in late.output and "no run yet" in late.output
    done = CliRunner().invoke(app, args)
    assert "all epochs after 3 epochs" in done.output, done.output


def test_the_epoch_is_the_best_of_the_mean_curve(tmp_path: Path) -> None:
    results = filed(tmp_path, RECORD, replace(RECORD, fold=1, score=[0.9, 0.6, 0.7]))
    summary = results.summary()
    assert summary is not None and summary.epoch in (0, 1) and summary.epoch == 0
    assert (summary.mean, summary.std, summary.runs) == (pytest.approx(70.0), pytest.approx(20.0), 2)


def test_a_run_that_reached_its_target_keeps_its_score(tmp_path: Path) -> None:
    early = replace(RECORD, fold=1, ended="target reached", epochs=1, score=[1.0], loss=[0.0])
    summary = filed(tmp_path, RECORD, early, stop_at=1.0).summary()
    assert summary is not None and summary.epoch == 1
    assert summary.mean == pytest.approx(90.0)
    assert summary.notes == ("1 of 2 runs stopped at the first epoch with 100%",)


def test_official_splits_average_test_scores(tmp_path: Path) -> None:
    runs = [replace(RECORD, seed=s, test=t) for s, t in enumerate((0.7, 0.8))]
    summary = filed(tmp_path, *runs).summary()
    assert summary is not None and summary.epoch is None and str(summary) == "75.0 ± 5.0"


def test_eighty_columns_cut_nothing_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped, late = replace(RECORD, ended="target reached"), replace(RECORD, ended="out of time", test=0.7)
    for name in ("CEXP-ds-ed-graphconv", "EXP-ds-ed"):
        filed(tmp_path, stopped, replace(stopped, fold=1), name=name, paper="100.0 ± 0.0", stop_at=1.0)
    filed(tmp_path, late, name="ogbg-moltox21-ds-nm", paper="75.5", epochs=100)
    filed(tmp_path, replace(RECORD, test=0.5), name="a name of one's own that is far too long [for] eighty columns")
    monkeypatch.setenv("COLUMNS", "80")
    lines = CliRunner().invoke(app, ["table", str(tmp_path)]).output.splitlines()
    assert max(map(len, lines)) <= 80 and not any("…" in line for line in lines)
    cells = [line.split() for line in lines]
    assert ["EXP-ds-ed", "accuracy", "100.0", "±", "0.0", "80.0", "±", "0.0", "2", "1", "[1]"] in cells
    assert ["ogbg-moltox21-ds-nm", "accuracy", "75.5", "70.0", "1", "[2]"] in cells
    text = "\n".join(line.strip() for line in lines)
    assert text.count("[1] 2 of 2 runs stopped at the first epoch with 100%") == 1
    assert "[2] the time was up after 3 of 100 epochs" in text and "[3]" not in text
    assert "[for]" in text  # a name is not markup


def test_out_of_time_is_said(tmp_path: Path) -> None:
    late = replace(RECORD, ended="out of time", test=0.7)
    results = filed(tmp_path, late, epochs=100, paper="76.7")
    assert not results.has(0, 0)
    text = markdown([results])
    assert "| n | accuracy | 76.7 | 70.0 | 80.0 | 1 | the time was up after 3 of 100 epochs |" in text
    results.add(replace(late, ended="all epochs"))
    assert results.has(0, 0) and len(results.records) == 1
    assert [r.ended for r in Results.load(results.path).records] == ["all epochs"]
