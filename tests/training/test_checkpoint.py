"""Files that are no checkpoint, or not one for this: one clear line in predict, test and resume."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from enfa.cli.app import app
from enfa.training import fit, read_config
from enfa.training.checkpoint import load_checkpoint, load_model
from enfa.training.settings.folder import BEST, LAST, folder_of

Refused = Callable[..., None]


@pytest.fixture
def refused(trained: tuple[Path, Path, bytes], tmp_path: Path) -> Refused:
    """The file is refused, for the same reason, wherever it is given."""
    path, npz, _ = trained
    last = folder_of(read_config(path)) / LAST

    def check(content: bytes | dict[str, Any], message: str, resumes: bool = False) -> None:
        given = tmp_path / "x.ckpt"
        given.write_bytes(content) if isinstance(content, bytes) else torch.save(content, given)
        before = last.read_bytes()
        last.write_bytes(given.read_bytes())
        commands = [["train", path, "--resume", "--no-progress"]]
        if not resumes:
            commands += [["test", path, "--checkpoint", given, "--no-progress"]]
            commands += [["predict", given, npz, "--out", tmp_path / "p.csv"]]
        for command in commands:
            result = CliRunner().invoke(app, [str(word) for word in command])
            lines = [line for line in result.stderr.splitlines() if line]
            assert result.exit_code == 2 and len(lines) == 1, result.stderr
            assert message in lines[0] and str(last if command[0] == "train" else given) in lines[0], lines[0]
        last.write_bytes(before)
        assert not (tmp_path / "p.csv").exists()

    return check


def test_bytes_that_are_none(trained: tuple[Path, Path, bytes], refused: Refused) -> None:
    data = trained[2]
    refused(b"", "is empty: Expected a checkpoint of enfa train")
    for content in (b"\0", b"PK\x03\x04", b"no checkpoint at all", b"\x80\x02}", data[:100], data[: len(data) // 2], data[:-1]):
        refused(content, "is damaged, or no checkpoint of plain tensors")
    refused(b"id,smiles,active\n0,CC,1\n", "of plain tensors (it holds other things, or is a file of another kind)")


def test_random_bytes_and_cuts_are_value_errors(trained: tuple[Path, Path, bytes], tmp_path: Path) -> None:
    data, rng, path = trained[2], random.Random(0), tmp_path / "x.ckpt"
    for i in range(120):
        path.write_bytes(rng.randbytes(rng.randint(1, 60)) if i % 2 else data[: rng.randrange(1, len(data))])
        with pytest.raises(ValueError, match=r"x\.ckpt is damaged"):
            load_checkpoint(path)


def test_another_layout_or_version(trained: tuple[Path, Path, bytes], refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "a.ckpt").write_bytes(trained[2])
    whole = load_checkpoint(tmp_path / "a.ckpt")

    def changed(act: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        new = copy.deepcopy(whole)
        act(new)
        return new

    refused({"state_dict": {}}, "is no checkpoint of enfa train")
    refused(whole["state_dict"], "is no checkpoint of enfa train, but weights alone: make the model, and model.load")
    refused(changed(lambda c: c.pop("enfa")), "is no checkpoint of enfa train")
    refused(changed(lambda c: c.update(enfa=3)), "is no checkpoint of enfa train")
    for name in ("config", "problem", "curve", "seconds"):
        refused(changed(lambda c, n=name: c["enfa"].pop(n)), f"is a damaged checkpoint: Expected it to hold {name}, got none")
    refused(changed(lambda c: c.pop("state_dict")), "is a damaged checkpoint: Expected it to hold state_dict")
    refused(changed(lambda c: c["enfa"].update(curve=[3])), "Expected it to hold curve")
    refused(changed(lambda c: c["enfa"].update(version=7)), "is a checkpoint of another version (7 there, '")
    older = "is a checkpoint of format 1, and this version reads 2, in which weights have other names: train anew, or use the "
    refused(changed(lambda c: c["enfa"].pop("format")), older + "version that has written it ('")
    refused(changed(lambda c: c["enfa"].update(format="new")), "is a checkpoint of format 'new', and this version reads 2")
    other = "is a checkpoint of another version ('9.0' there, '"

    def newer(c: dict[str, Any]) -> None:
        c["enfa"]["version"] = "9.0"
        c["enfa"]["config"]["warp"] = 3

    refused(changed(newer), other)
    refused(changed(newer), "Expected a setting that exists, got 'warp'")
    refused(changed(lambda c: c["enfa"]["problem"].update(shape=3)), "is a damaged checkpoint: ")
    refused(changed(lambda c: c["state_dict"].pop("model.head.0.bias")), "Expected 'model.head.0.bias' of shape [8], got none")
    refused(changed(lambda c: c["state_dict"].update(more=torch.ones(2))), "Expected no 'more', got one of shape [2]")
    wide = "Expected 'model.head.0.bias' of shape [8], got one of shape [9]"
    refused(changed(lambda c: c["state_dict"].update({"model.head.0.bias": torch.ones(9)})), wide)

    def of_own_code(c: dict[str, Any]) -> None:
        c["enfa"]["code"] = {"net.py": "as it was"}
        c["state_dict"]["more"] = torch.ones(2)

    refused(changed(of_own_code), "is not of the model that net.py makes now: Expected no 'more', got one of shape [2]")
    alone = "cannot be resumed: Expected it to hold optimizer_states, got weights only"
    refused(changed(lambda c: c.pop("optimizer_states")), alone, resumes=True)


def test_an_older_version_of_the_same_layout_is_read(trained: tuple[Path, Path, bytes], tmp_path: Path) -> None:
    path = tmp_path / "a.ckpt"
    path.write_bytes(trained[2])
    checkpoint = load_checkpoint(path)
    checkpoint["enfa"]["version"] = "0.0.1"
    torch.save(checkpoint, path)
    assert load_model(path)[1].epochs == 2


def test_a_resumed_run_keeps_to_its_own_folder(config_file: Callable[..., Path], tmp_path: Path) -> None:
    """A checkpoint that names other files: nothing there is deleted, or written."""
    config = read_config(config_file(epochs=1))
    fit(config, progress=False)
    folder, precious = folder_of(config), tmp_path / "precious.ckpt"
    precious.write_text("mine")
    inside = folder / ".." / ".." / ".." / precious.name  # below the folder, as far as the words go
    assert inside.resolve() == precious
    checkpoint = load_checkpoint(folder / LAST)
    states = [s for s in checkpoint["callbacks"].values() if "best_model_path" in s]
    assert len(states) == 1
    score = torch.tensor(-1.0)
    states[0].update(dict.fromkeys(("best_model_path", "kth_best_model_path"), str(inside)))
    states[0].update(best_k_models={str(inside): score}, best_model_score=score, kth_value=score)
    torch.save(checkpoint, folder / LAST)
    before = (folder / BEST).read_bytes()
    fit(read_config(config_file(epochs=3)), resume=True, progress=False)
    assert precious.read_text() == "mine" and (folder / BEST).read_bytes() != before
    assert sorted(p.name for p in folder.glob("*.ckpt")) == [BEST, LAST]
