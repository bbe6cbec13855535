"""Folders and checkpoints as what a run starts from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import enfa
from enfa.cli.app import app
from enfa.training import fit, read_config
from enfa.training.settings.folder import BEST, LAST, folder_of
from enfa.training.settings.freeze import frozen_modules

Made = tuple[Path, Path, bytes]


@pytest.fixture
def folder(trained: Made, tmp_path: Path) -> Path:
    enfa.load(folder_of(read_config(trained[0])) / BEST).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def run(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code in (0, 2), result.output
    return " ".join(result.output.split())


def test_a_folder_predicts_what_its_checkpoint_does(trained: Made, folder: Path, tmp_path: Path) -> None:
    config = read_config(trained[0])
    model = enfa.load(folder)
    assert model.policy == enfa.NodeMarking() and model.task["problem"]["task"] == "multiclass"
    for name, source in (("a", folder), ("b", folder_of(config) / BEST)):
        assert "40 predictions" in run("predict", source, trained[1], "--out", tmp_path / f"{name}.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    said = json.loads((folder / "config.json").read_text())
    assert said["task"]["trained_on"].startswith("trained on")
    del said["task"]["problem"]["metric"]
    (folder / "config.json").write_text(json.dumps(said))
    assert "has a damaged task, or one of another version" in run("predict", folder, trained[1], "--out", tmp_path / "c.csv")


def test_a_model_that_was_never_trained_predicts_nothing(trained: Made, tmp_path: Path) -> None:
    enfa.DSGNN([3], 4, 2, 2).save_pretrained(tmp_path / "m", enfa.NodeMarking())
    assert "got one that was saved without a task" in run("predict", tmp_path / "m", trained[1], "--out", tmp_path / "c.csv")


def test_starts_where_the_other_ended(trained: Made, folder: Path, config_file: Callable[..., Path]) -> None:
    """With a learning rate that moves nothing, all weights are the other's."""
    source = enfa.load(folder)
    for name, init in (("saved", folder), ("run", folder_of(read_config(trained[0])))):
        path = config_file(name, init=str(init), lr=1e-12, epochs=1, norm="batch")
        fit(read_config(path), progress=False)
        found = enfa.load(folder_of(read_config(path)) / LAST)
        for (weight, one), (_, other) in zip(source.named_parameters(), found.named_parameters()):
            assert torch.allclose(one, other, atol=1e-9), weight


@pytest.mark.parametrize("freeze", ["encoder", "layers", "encoder,layers", "all but head"])
def test_what_is_frozen_stays_and_the_head_is_new(
    folder: Path, config_file: Callable[..., Path], make_npz: Callable[..., Path], freeze: str
) -> None:
    """Statistics of frozen norms stay, too; all else learns."""
    data = make_npz(np.arange(30) % 3)
    path = config_file(init=str(folder), freeze=freeze, dataset=str(data), epochs=1)
    assert "its head has 2 outputs, 3 are needed: a new head" in run("train", path, "--no-progress")
    last = folder_of(read_config(path)) / LAST
    source, found = enfa.load(folder).state_dict(), enfa.load(last).state_dict()
    parts = {"all but head": ("encoder", "layers", "subgraph_mlp")}.get(freeze, tuple(freeze.split(",")))
    for name, value in found.items():
        same = source[name].shape == value.shape and torch.equal(source[name], value)
        if name.startswith(parts) or value.ndim == 2:  # a bias before a norm has no gradient
            assert same == name.startswith(parts), name
    assert "test score" in run("test", path, "--no-progress")
    longer = run("train", path, "epochs=2", "--resume", "--no-progress")
    assert "2 epochs" in longer, longer
    again = enfa.load(last).state_dict()
    assert all(torch.equal(again[name], source[name]) for name in again if name.startswith(parts))


def test_a_model_that_knows_more_categories_reads_fewer(tmp_path: Path, config_file: Callable[..., Path]) -> None:
    enfa.DSGNN([7], 8, 2, 2, jk="concat").double().save_pretrained(tmp_path / "wide")
    path = config_file(init=str(tmp_path / "wide"), epochs=1)
    fit(read_config(path), progress=False)
    assert enfa.load(folder_of(read_config(path)) / LAST).arguments["in_channels"] == [7]
    assert "test score" in run("test", path, "--no-progress")


def test_refused_in_one_sentence(folder: Path, config_file: Callable[..., Path], tmp_path: Path) -> None:
    path = config_file()
    for words, message in [
        (["freeze=encoder"], "Expected init beside freeze"),
        ([f"init={folder}", "freeze=encodr"], "Expected freeze to be one of encoder, layers, all but head, got 'encodr'"),
        ([f"init={tmp_path}"], "There is no model in"),
        ([f"init={tmp_path}/x.ckpt"], "There is no checkpoint"),
        ([f"init={folder}", "num_layers=3"], "got another: num_layers is 2 there and 3 here"),
        ([f"init={folder}", "model=dss"], "Expected the model DSSGNN, got DSGNN"),
    ]:
        assert message in run("train", path, *words, "--no-progress"), words
    enfa.DSGNN([2], 8, 2, 2, jk="concat").save_pretrained(tmp_path / "narrow")
    assert "in_channels is [2] there and [3] here" in run("train", path, f"init={tmp_path / 'narrow'}", "--no-progress")


def test_float_features_have_no_encoder_to_freeze() -> None:
    with pytest.raises(ValueError, match="Expected a model with parameters in 'encoder' to freeze, got one without"):
        frozen_modules(enfa.DSGNN(2, 8, 2, 2), "encoder")
