import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from enfa.cli.app import app
from enfa.training import Config, evaluate, fit, load_model, read_config
from enfa.training.checkpoint import load_checkpoint
from enfa.training.results.parts import Parts
from enfa.training.settings.folder import BEST, LAST, folder_of
from enfa.training.start.prepare import prepare

Write = Callable[..., Path]


def train(path: Path, *overrides: str, resume: bool = False) -> Config:
    config = read_config(path, overrides)
    fit(config, resume=resume, progress=False)
    return config


def state(config: Config, name: str = LAST) -> dict[str, torch.Tensor]:
    return load_checkpoint(folder_of(config) / name)["state_dict"]


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


@pytest.mark.parametrize("stop", [1, 2, 3])
@pytest.mark.parametrize("workers", [0, 1])
def test_resumed_is_uninterrupted_bit_for_bit(config_file: Write, stop: int, workers: int) -> None:
    if workers and stop != 2:
        pytest.skip("once is enough")
    path = config_file(dropout=0.5, precision="32", num_workers=workers)
    whole = train(path, "name=whole")
    train(path, "name=parts", f"epochs={stop}")
    parts = train(path, "name=parts", resume=True)
    assert same(state(whole), state(parts))
    a, b = load_checkpoint(folder_of(whole) / LAST), load_checkpoint(folder_of(parts) / LAST)
    assert a["enfa"]["curve"] == b["enfa"]["curve"] and len(a["enfa"]["curve"]) == 4
    for key in ("exp_avg", "exp_avg_sq"):
        first, second = (list(c["optimizer_states"][0]["state"].values()) for c in (a, b))
        assert first and all(torch.equal(x[key], y[key]) for x, y in zip(first, second, strict=True))
    assert a["lr_schedulers"] == b["lr_schedulers"]
    for name in (LAST, BEST):
        assert same(state(whole, name), state(parts, name))
    lines = [(folder_of(c) / "metrics.csv").read_text() for c in (whole, parts)]
    assert lines[0] == lines[1] and len(lines[0].splitlines()) == 5


def test_learning_rate_halves(config_file: Write) -> None:
    curve = load_checkpoint(folder_of(train(config_file())) / LAST)["enfa"]["curve"]
    assert [row["lr"] for row in curve] == [0.01, 0.01, 0.005, 0.005]


def test_seeds_make_other_runs_and_one_seed_the_same(config_file: Write) -> None:
    path = config_file(epochs=1)
    a, b, c = (train(path, f"name={n}", f"seed={s}") for n, s in (("a", 0), ("b", 0), ("c", 1)))
    assert same(state(a), state(b)) and not same(state(a), state(c))


@pytest.mark.parametrize("model", ["ds", "dss"])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_plans_train_alike(config_file: Write, model: str, dropout: float) -> None:
    path = config_file(epochs=3, model=model, dropout=dropout)
    configs = [train(path, f"plan={plan}", f"name={plan}") for plan in ("full", "distinct")]
    first, second = (load_checkpoint(folder_of(c) / LAST)["enfa"]["curve"] for c in configs)
    np.testing.assert_allclose([r["loss"] for r in first], [r["loss"] for r in second], rtol=1e-8)
    for key, value in state(configs[0]).items():
        torch.testing.assert_close(state(configs[1])[key], value, rtol=1e-7, atol=1e-8)


def test_early_stopping_and_target(config_file: Write) -> None:
    path = config_file(epochs=30)
    stopped = fit(read_config(path, ["early_stopping=2", "lr=1e-12", "name=a"]), progress=False)
    assert stopped is not None and stopped.ended == "early stopping" and stopped.epochs == 3
    target = fit(read_config(path, ["stop_at=0.25", "name=b"]), progress=False)
    assert target is not None and target.ended == "target reached" and target.score[-1] >= 0.25


@pytest.mark.parametrize("setting", ["early_stopping=2", "stop_at=0.25"])
@pytest.mark.parametrize("validation", ["test", "next"])
def test_a_run_that_has_stopped_stays_as_it_is(config_file: Write, setting: str, validation: str) -> None:
    words = [setting, f"validation={validation}", *(["lr=1e-12"] if "early" in setting else [])]
    path = config_file(epochs=30)
    config = read_config(path, words)
    first = fit(config, progress=False)
    assert first is not None and first.ended in ("early stopping", "target reached") and first.epochs < 30
    kept = {file: file.read_bytes() for file in folder_of(config).iterdir() if file.suffix in (".ckpt", ".csv", ".json")}
    assert {file.name for file in kept} == {BEST, LAST, "metrics.csv", "result.json"}
    again = CliRunner().invoke(app, ["train", str(path), *words, "--resume", "--no-progress"])
    said = f"fold-0-seed-0 has stopped after {first.epochs} of 30 epochs, and nothing is left to train."
    assert again.exit_code == 0 and said in again.output and f"{first.ended}: {first.epochs} epoch" in again.output, (
        again.output
    )
    assert {file: file.read_bytes() for file in kept} == kept
    # nor is it trained where its record is damaged, or one of other settings
    (folder_of(config) / "result.json").write_text("{")
    for more in ([], ["epochs=40"]):
        record = fit(read_config(path, [*words, *more]), resume=True, progress=False)
    assert record is not None and (record.ended, record.epochs, record.test) == (first.ended, first.epochs, first.test)
    assert (record.score, record.loss, record.best_epoch) == (first.score, first.loss, first.best_epoch)
    assert abs(record.seconds - first.seconds) < 0.5
    assert {file: file.read_bytes() for file in kept if file.suffix != ".json"} == {
        file: data for file, data in kept.items() if file.suffix != ".json"
    }


def test_a_run_that_has_stopped_goes_on_with_more_patience_to_the_same_weights(config_file: Write) -> None:
    path = config_file(epochs=30, lr=1e-12)
    whole, parts = (read_config(path, ["early_stopping=5", f"name={name}"]) for name in ("whole", "parts"))
    first, stopped = fit(whole, progress=False), fit(read_config(path, ["early_stopping=2", "name=parts"]), progress=False)
    assert first is not None and stopped is not None and (first.epochs, stopped.epochs) == (6, 3)
    more = fit(parts, resume=True, progress=False)
    assert more is not None and (more.epochs, more.score, more.ended) == (6, first.score, "early stopping")
    assert same(state(whole), state(parts))


def test_out_of_time_stops_after_an_epoch(config_file: Write) -> None:
    record = fit(read_config(config_file()), progress=False, deadline=time.monotonic())
    assert record is not None and (record.ended, record.epochs) == ("out of time", 1)


def test_official_splits_test_the_best_epoch(make_npz: Callable[..., Path], config_file: Write) -> None:
    y = np.random.default_rng(0).integers(0, 2, (40, 3)).astype(np.float32)
    y[5, 1] = np.nan
    parts = {"split_train": np.arange(20), "split_valid": np.arange(20, 30), "split_test": np.arange(30, 40)}
    config = read_config(config_file(dataset=str(make_npz(y, **parts))))
    record = fit(config, progress=False)
    assert record is not None and record.metric == "rocauc" and record.test is not None
    assert record.valid == max(record.score)
    assert evaluate(config, part="valid", progress=False) == pytest.approx(record.valid, abs=1e-6)
    assert evaluate(config, progress=False) == pytest.approx(record.test, abs=1e-6)


@pytest.mark.parametrize("precision", ["32", "bf16"])
def test_precision(config_file: Write, precision: str) -> None:
    record = fit(read_config(config_file(precision=precision)), progress=False)
    assert record is not None and np.isfinite(record.loss).all()


def test_a_model_comes_back_with_its_predictions(config_file: Write) -> None:
    config = train(config_file())
    run = prepare(config)
    model, read, _ = load_model(folder_of(config) / LAST)
    run.module.load_state_dict(state(config))
    plan = run.batches.compiled[:10]
    assert read == config
    assert torch.equal(model(plan), run.module.eval()(plan))


def test_interrupting_keeps_a_checkpoint_that_resumes(config_file: Write) -> None:
    path = config_file(epochs=5000, dropout=0.5)
    command = [sys.executable, "-m", "enfa", "train", str(path), "--no-progress"]
    # a shell starts what runs in the background deaf to interrupts, and so would be whatever that starts
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, before)
    config = read_config(path)
    last = folder_of(config) / LAST
    try:
        began = time.monotonic()
        while not last.exists() and time.monotonic() - began < 120:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, errors
    assert "--resume continues it" in errors and "Traceback" not in errors
    done = len(load_checkpoint(last)["enfa"]["curve"])
    assert 1 <= done < 5000
    epochs = f"epochs={done + 2}"
    train(path, epochs, resume=True)
    whole = train(path, epochs, "name=whole")
    assert same(state(config), state(whole))


def test_the_record_has_all_epochs_although_the_best_one_is_tested(config_file: Write) -> None:
    record = fit(read_config(config_file(validation="next", epochs=6)), progress=False)
    assert record is not None and record.test is not None
    assert (record.epochs, len(record.score), record.ended) == (6, 6, "all epochs")
    assert record.best_epoch < 5  # else this would show nothing
    assert list(record.parts) == ["import", "read", "compile", "kernels", "epochs", "test"]  # nothing is padded on the CPU


def test_of_steps_that_are_never_captured_the_first_alone_is_one_of_kernels(
    config_file: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []
    monkeypatch.setattr(Parts, "add", lambda self, name, seconds: given.append(name))
    assert fit(read_config(config_file(epochs=3, graphed=True)), progress=False) is not None
    assert given.count("kernels") == 1


@pytest.mark.parametrize(("validation", "says"), [("test", True), ("next", False)])
def test_a_score_that_was_chosen_on_the_test_fold_says_so(config_file: Write, validation: str, says: bool) -> None:
    path = config_file(validation=validation, epochs=1)
    result = CliRunner().invoke(app, ["train", str(path), "--no-progress"])
    assert result.exit_code == 0 and ("on the test fold: chosen there, it flatters" in " ".join(result.output.split())) == says
    folder = folder_of(read_config(path))
    for more, also in (([], says), (["--part", "valid"], False), (["--checkpoint", str(folder / LAST)], False)):
        result = CliRunner().invoke(app, ["test", str(path), *more, "--no-progress"])
        assert result.exit_code == 0, result.output
        assert ("the epoch was chosen on this fold, which flatters (validation=next does not)" in result.output) == also
