"""Training on padded, packed batches is training."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from enfa.batch.static.packed import PackedLoader
from enfa.training import fit, read_config
from enfa.training.checkpoint import load_checkpoint
from enfa.training.loop.graphed import Chunks
from enfa.training.loop.last import LastCheckpoint
from enfa.training.settings.folder import BEST, LAST, folder_of
from enfa.training.start.prepare import prepare

Write = Callable[..., Path]


def _train(path: Path, *overrides: str, resume: bool = False) -> dict:
    config = read_config(path, overrides)
    fit(config, resume=resume, progress=False)
    found = load_checkpoint(folder_of(config) / LAST)
    assert (folder_of(config) / BEST).exists()
    return found


@pytest.mark.parametrize("model", ["ds", "dss"])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("workers", [0, 2])
def test_same_curve_as_ungraphed(config_file: Write, model: str, dropout: float, workers: int) -> None:
    path = config_file(model=model, dropout=dropout, num_workers=workers)
    plain, packed = (_train(path, f"graphed={g}", f"name=is-{g}") for g in ("false", "true"))
    assert plain["global_step"] == packed["global_step"]
    assert plain["epoch"] == packed["epoch"] and plain["lr_schedulers"] == packed["lr_schedulers"]
    for a, b in zip(plain["enfa"]["curve"], packed["enfa"]["curve"], strict=True):
        assert a == pytest.approx(b, rel=1e-10)
    told = json.loads((folder_of(read_config(path, ["name=is-true"])) / "batches.json").read_text())
    assert "more rows by padding" in told["train"]["padding"] and told["train"]["workers"] == workers
    assert told["eager steps"] == packed["global_step"]
    for key, value in plain["state_dict"].items():
        torch.testing.assert_close(packed["state_dict"][key], value, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("workers", [0, 1])
def test_resumed_is_uninterrupted_bit_for_bit(config_file: Write, workers: int) -> None:
    path = config_file(dropout=0.5, precision="32", graphed=True, num_workers=workers)
    whole = _train(path, "name=whole")
    _train(path, "name=parts", "epochs=2")
    parts = _train(path, "name=parts", resume=True)
    assert whole["enfa"]["curve"] == parts["enfa"]["curve"] and whole["global_step"] == parts["global_step"]
    assert whole["lr_schedulers"] == parts["lr_schedulers"]
    for key, value in whole["state_dict"].items():
        assert torch.equal(parts["state_dict"][key], value), key


def test_a_run_may_be_resumed_the_other_way(config_file: Write) -> None:
    path = config_file()
    _train(path, "graphed=true", "epochs=2")
    mixed = _train(path, "graphed=false", resume=True)
    plain = _train(path, "graphed=false", "name=plain")
    for key, value in plain["state_dict"].items():
        torch.testing.assert_close(mixed["state_dict"][key], value, rtol=1e-7, atol=1e-8)


def test_tasks_with_labels_that_were_not_measured(config_file: Write, make_npz: Callable[..., Path]) -> None:
    y = np.random.default_rng(0).integers(0, 2, (40, 3)).astype(np.float32)
    y[5, 1] = y[6, 2] = np.nan
    parts = {"split_train": np.arange(20), "split_valid": np.arange(20, 30), "split_test": np.arange(30, 40)}
    path = config_file(dataset=str(make_npz(y, **parts)), batch_size=6)
    plain, packed = (_train(path, f"graphed={g}", f"name=is-{g}") for g in ("false", "true"))
    for a, b in zip(plain["enfa"]["curve"], packed["enfa"]["curve"], strict=True):
        assert a == pytest.approx(b, rel=1e-8)


@pytest.mark.parametrize("setting", ["plan=full", "max_rows=100", "precision=16", "devices=2"])
def test_settings_that_cannot_be_graphed(config_file: Write, setting: str) -> None:
    with pytest.raises(ValueError, match=f"graphed=true, got {setting}"):
        read_config(config_file(), ["graphed=true", setting])
    assert read_config(config_file(), [setting]).graphed == "auto"


def test_the_last_checkpoint_is_not_written_in_every_short_epoch(config_file: Write, monkeypatch: Any) -> None:
    written: list[int] = []
    original = LastCheckpoint.on_train_end

    def note(self: LastCheckpoint, trainer: Any, module: Any) -> None:
        original(self, trainer, module)
        written.append(self.writes)

    monkeypatch.setattr(LastCheckpoint, "on_train_end", note)
    found = _train(config_file(epochs=6))
    assert written == [2]  # the first epoch, and the end
    assert len(found["enfa"]["curve"]) == 6


cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@cuda
@pytest.mark.parametrize("model", ["ds", "dss"])
def test_captured_training_is_plain_training(config_file: Write, model: str) -> None:
    path = config_file(model=model, accelerator="gpu", epochs=8)
    plain, captured = (_train(path, f"graphed={g}", f"name=is-{g}") for g in ("false", "true"))
    for a, b in zip(plain["enfa"]["curve"], captured["enfa"]["curve"], strict=True):
        assert a == pytest.approx(b, rel=1e-5)


@cuda
def test_captured_training_repeats_bit_for_bit(config_file: Write) -> None:
    path = config_file(accelerator="gpu", epochs=8, dropout=0.5, precision="32")
    once, again = (_train(path, f"name={n}") for n in ("once", "again"))
    for key, value in once["state_dict"].items():
        assert torch.equal(again["state_dict"][key], value), key


@cuda
def test_captured_training_resumes(config_file: Write) -> None:
    path = config_file(accelerator="gpu", epochs=8)
    whole = _train(path, "name=whole")
    _train(path, "name=parts", "epochs=4")
    parts = _train(path, "name=parts", resume=True)
    for a, b in zip(whole["enfa"]["curve"], parts["enfa"]["curve"], strict=True):
        assert a == pytest.approx(b, rel=1e-5)


@pytest.mark.parametrize("size", [1, 2, 5, 50])
def test_chunks_hold_every_batch_once_and_end_the_epoch(config_file: Write, size: int) -> None:
    run = prepare(read_config(config_file()))
    needs = run.batches.compiled.program.needs
    whole, cut = (PackedLoader(run.batches.compiled, needs, 8, shuffle) for shuffle in (True, True))
    kept = PackedLoader(run.batches.compiled, needs, 8)
    chunks = Chunks(cut, size)
    for _ in range(2):
        found = [[batch.graphs.tolist() for batch in chunk] for chunk in chunks]
        assert len(found) == len(chunks) == -(-5 // size)
        assert [b for chunk in found for b in chunk] == [batch.graphs.tolist() for batch in whole]
    for chunk, _ in zip(Chunks(kept, size), range(len(Chunks(kept, size)))):  # as Lightning does: no further
        list(chunk)
    assert kept._kept is not None
