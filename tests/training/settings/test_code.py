"""Runs with models, convs and policies out of a file of the user's own."""

import json
from collections.abc import Callable
from pathlib import Path

import code_of_mine
import pytest
import torch

import enfa
from enfa import own_code
from enfa.edits import policy_from
from enfa.nn.models.pretrained import load_pretrained
from enfa.training import Config, fit, read_config
from enfa.training.checkpoint import load_checkpoint, load_model
from enfa.training.loop.graphed import uses_graphs
from enfa.training.settings import code as of_run
from enfa.training.settings.folder import LAST, folder_of

Write = Callable[..., Path]
OWN = {"model": "Plain", "num_layers": 4, "hidden_channels": 32, "jk": None, "precision": "32"}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the file, which a test may change. As a module it is read once in a process."""
    monkeypatch.setenv("ENFA_CODE", code_of_mine.__file__)
    own_code._warn.cache_clear()
    return Path(code_of_mine.__file__)


def test_trained_resumed_tested_and_predicted(
    config_file: Write, npz: Path, tmp_path: Path, enfa: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As users do it, in processes of their own; the file is called otherwise, and changes on the way."""
    file, beside = tmp_path / "net.py", tmp_path / "net_parts.py"
    file.write_text(f"import net_parts\n{Path(code_of_mine.__file__).read_text()}")
    beside.write_text("WIDTH = 8\n")
    path = config_file(**{**OWN, "policy": "Leaves", "policy_params": {"every": 3}, "validation": "next", "epochs": 2})
    run, more = tmp_path / "runs" / "tiny" / "fold-0-seed-0", ["--code", file, "--no-progress"]
    assert enfa("train", path, *more).returncode == 0
    record = json.loads((run / "result.json").read_text())
    with monkeypatch.context() as here:
        here.setenv("ENFA_CODE", str(file))
        assert list(record["code"]) == ["net.py", "net_parts.py"]
        assert record["code"] == load_checkpoint(run / LAST)["enfa"]["code"]
    file.write_text(file.read_text() + "# changed\n")
    resumed = enfa("train", run, "--resume", "epochs=3", *more)
    assert resumed.returncode == 0 and "Warning: net.py has changed since" in resumed.stderr
    beside.write_text("WIDTH = 9\n")
    tested = enfa("test", run, *more)
    assert tested.returncode == 0 and "test score: accuracy" in tested.stdout
    assert "net_parts.py has changed since" in tested.stderr
    given = [run, npz, "--out", tmp_path / "p.csv"]
    assert enfa("predict", *given, "--code", file).returncode == 0
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 41
    refused = enfa("predict", *given)
    assert refused.returncode == 2 and "got 'Plain'; one of your own needs the file that defines it" in refused.stderr


def test_sweeps_in_processes(config_file: Write, tmp_path: Path, enfa: Callable) -> None:
    path, results = config_file(**OWN, epochs=1), tmp_path / "results"
    command = ["sweep", path, "--folds", "0,1", "--jobs", "2", "--results", results, "--code", code_of_mine.__file__]
    found = enfa(*command)
    assert found.returncode == 0, found.stderr
    assert len(json.loads((results / "tiny.json").read_text())["runs"]) == 2
    assert "0 runs to do" in enfa(*command).stdout


@pytest.mark.parametrize(
    "own", [{"model": "ds", "conv": "Gated", "policy": "Leaves"}, {"model": "Unsteady", "policy": "Shuffled"}]
)
def test_distinct_rows_train_as_all_rows_do(file: Path, config_file: Write, own: dict[str, str]) -> None:
    """Also where Python and NumPy draw numbers: like PyTorch's they are functions of the seed."""
    curves = []
    for plan in ("distinct", "full"):
        settings = {**OWN, **own, "plan": plan, "precision": "64", "epochs": 3}
        config = read_config(config_file(name=plan, **settings))
        fit(config, progress=False)
        curves.append([row["loss"] for row in load_checkpoint(folder_of(config) / LAST)["enfa"]["curve"]])
    assert curves[0] == pytest.approx(curves[1], rel=1e-9)


def test_weights_of_lazy_modules_are_drawn_from_the_seed_too(file: Path, config_file: Write) -> None:
    first = []
    for name, more in {"one": {}, "again": {}, "full": {"plan": "full"}, "other": {"seed": 1}}.items():
        config = read_config(config_file(name=name, **{**OWN, "precision": "64"}, **more, epochs=1))
        fit(config, progress=False)
        first.append(load_checkpoint(folder_of(config) / LAST)["state_dict"]["model.head.weight"])
        torch.rand(1)  # whatever else is drawn in this process
    assert torch.equal(first[0], first[1]) and not torch.equal(first[0], first[3])
    torch.testing.assert_close(first[0], first[2], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("Wide", r"Expected outputs of shape \[8, 2\] from Wide, .* for each of the classes, got \[8, 7\]"),
        ("Net", "Expected Net to return tensors, got Rows of pairs"),
        ("nothing", "Expected nothing to make a torch.nn.Module, got NoneType"),
    ],
)
def test_what_does_not_fit_is_refused(file: Path, config_file: Write, model: str, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        fit(read_config(config_file(**{**OWN, "model": model})), progress=False)


def test_defaults_that_no_config_can_say_stay_the_models(file: Path) -> None:
    made = Config(dataset="", model="Plain", model_params={})
    assert made.conv is None and made.readout is None and Config.make(made.to_dict()) == made


def test_steps_are_captured_where_that_is_asked_for(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from enfa.training.loop import graphed

    said: list[str] = []
    monkeypatch.setattr(graphed, "on_gpu", lambda config: True)
    monkeypatch.setattr(graphed, "accelerated", lambda like: True)
    monkeypatch.setattr(graphed, "tell", said.append)
    monkeypatch.setattr(torch, "empty", lambda *of, **more: None)
    assert uses_graphs(Config(dataset="")) and not said
    assert uses_graphs(Config(dataset="", model="Plain", graphed=True)) and not said
    for own in ({"model": "Plain"}, {"conv": "Gated"}):
        assert not uses_graphs(Config(dataset="", **own))
    assert len(said) == 2 and "graphed=true captures them" in said[0]


def test_models_of_ones_own_are_saved_by_their_names(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = code_of_mine.Means(3, 8, 2, 2)
    model.save_pretrained(tmp_path / "means", enfa.NodeMarking())
    again = load_pretrained(tmp_path / "means")
    assert type(again) is code_of_mine.Means and torch.equal(again.head[0].weight, model.head[0].weight)
    said = tmp_path / "means" / "config.json"
    said.write_text(said.read_text().replace('"code_of_mine.py": "', '"code_of_mine.py": "0'))
    with pytest.warns(UserWarning, match=r"code_of_mine.py has changed since .*config.json was written"):
        load_pretrained(tmp_path / "means")
    monkeypatch.setenv("ENFA_CODE", "")
    lacking = r"config.json: Expected the model to be one of .*, got .Means.*; one of your own needs the file"
    with pytest.raises(ValueError, match=lacking):
        load_pretrained(tmp_path / "means")


def test_nothing_in_a_checkpoint_names_a_file(file: Path, config_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    config = read_config(config_file(**OWN, epochs=1))
    fit(config, progress=False)
    monkeypatch.setenv("ENFA_CODE", "")
    with pytest.raises(ValueError, match=r"last.ckpt: Expected model to be one of .* --code FILE"):
        load_model(folder_of(config) / LAST)
    assert str(file) not in repr(torch.load(folder_of(config) / LAST, weights_only=True)["enfa"])


def test_policies_within_policies(file: Path) -> None:
    within = {"policy": "subsample", "policy_params": {"policy": {"name": "Every", "policy": "Leaves"}, "count": 3}}
    assert isinstance(policy_from("subsample", **within["policy_params"]).policy.policy, code_of_mine.Leaves)
    assert list(of_run.code_of_run(Config(dataset="", **within)) or []) == [file.name]
    within["policy_params"]["policy"] = "node_marking"
    assert of_run.code_of_run(Config(dataset="", **within)) is None
