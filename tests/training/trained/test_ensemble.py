import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from enfa.training import fit, read_config
from enfa.training.checkpoint import load_checkpoint
from enfa.training.settings.folder import BEST, LAST, MEMBERS, folder_of
from enfa.training.trained import ensemble
from enfa.training.trained.ensemble import fit_ensemble
from enfa.training.trained.members import members, one_model
from enfa.training.trained.predict import outputs, predict

Write = Callable[..., Path]
SMALL = {"num_layers": 1, "hidden_channels": 4, "epochs": 1}


def test_mean_and_deviation_over_seeds(config_file: Write, npz: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = read_config(config_file(**SMALL), seed=3)
    told = []
    folder = fit_ensemble(config, 3, progress=False, report=lambda each, record: told.append((each.seed, record.epochs)))
    assert told == [(3, 1), (4, 1), (5, 1)] and folder == Path(config.out) / config.name
    paths = members(folder)
    assert paths == [folder / f"fold-0-seed-{seed}" / BEST for seed in (3, 4, 5)]
    each = np.array([[[row["p0"], row["p1"]] for row in predict(path, npz)] for path in paths])
    assert each.std(0).min() > 0, "seeds differ"
    rows = predict(folder, npz)
    assert members(folder / MEMBERS) == paths and predict(folder / MEMBERS, npz) == rows
    assert list(rows[0]) == ["graph", "class", "p0", "p0_deviation", "p1", "p1_deviation"]
    np.testing.assert_allclose([[r["p0"], r["p1"]] for r in rows], each.mean(0), atol=2e-6)
    np.testing.assert_allclose([[r["p0_deviation"], r["p1_deviation"]] for r in rows], each.std(0, ddof=1), atol=2e-6)
    # what is done stays done, and an ensemble that is there is not written over
    with monkeypatch.context() as patch:
        patch.setattr(ensemble, "fit", None)
        fit_ensemble(config, 3, progress=False, resume=True)
    # and what is not goes on
    fit_ensemble(replace(config, epochs=2), 3, progress=False, resume=True)
    assert all(len(load_checkpoint(path.with_name(LAST))["enfa"]["curve"]) == 2 for path in paths)
    before = {path: path.read_bytes() for path in folder.rglob("*.ckpt")}
    with pytest.raises(ValueError, match="fold-0-seed-3 holds a run already"):
        fit_ensemble(config, 2, progress=False)
    assert {path: path.read_bytes() for path in folder.rglob("*.ckpt")} == before


def test_a_member_trains_as_it_would_alone(config_file: Write, tmp_path: Path) -> None:
    config = read_config(config_file(**SMALL))
    second = members(fit_ensemble(config, 2, progress=False))[1]
    alone = read_config(config_file(**SMALL, out=str(tmp_path / "alone")), seed=1)
    fit(alone, progress=False)
    here, there = (load_checkpoint(path)["state_dict"] for path in (second, folder_of(alone) / BEST))
    assert here.keys() == there.keys() and all(here[name].equal(there[name]) for name in here)


def test_folders(config_file: Write, tmp_path: Path, npz: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no model in .*empty: Expected best\.ckpt \(of .*ensemble\.json .*got none"):
        members(tmp_path / "empty")
    for text in ("{}", "[]", "no", '{"runs": ["../elsewhere", "b"]}', '{"runs": ["a"]}', '{"runs": [1, 2]}'):
        (tmp_path / "empty" / MEMBERS).write_text(text)
        with pytest.raises(ValueError, match="Expected the names of two or more runs"):
            members(tmp_path / "empty")
    one, two = (read_config(config_file(**{**SMALL, "hidden_channels": width}, name=f"w{width}")) for width in (4, 5))
    for config in (one, two):
        fit(config, progress=False)
    assert members(folder_of(one)) == [folder_of(one) / BEST] and one_model(folder_of(one)) == folder_of(one) / BEST
    with pytest.raises(FileNotFoundError, match="got the runs fold-0-seed-0, of which one is to be named"):
        members(folder_of(one).parent)
    for number, config in enumerate((one, two)):
        folder_of(config).rename(tmp_path / "empty" / str(number))
    (tmp_path / "empty" / MEMBERS).write_text(json.dumps({"runs": ["0", "1"]}))
    with pytest.raises(ValueError, match=r"Expected one model, got an ensemble of 2: name one of its runs, such as .*empty/0"):
        one_model(tmp_path / "empty")
    with pytest.raises(ValueError, match="Expected models of one kind"):
        outputs(tmp_path / "empty", [])
    with pytest.raises(ValueError, match="at least 2 models, got 1"):
        fit_ensemble(one, 1)
