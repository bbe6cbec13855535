"""Bad input: one clear line, exit code 2, no traceback, nothing overwritten."""

import gzip
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from typer.testing import CliRunner

from enfa.cli.app import app

pytest.importorskip("lightning", reason="training needs the extra enfa[train]")


def write_npz(path: Path, **changes: object) -> Path:
    """30 paths of three nodes, in two classes."""
    arrays: dict[str, object] = {
        "num_nodes": np.full(30, 3), "num_edges": np.full(30, 2), "edges": np.tile([[0, 1], [1, 2]], (30, 1)),
        "node_label": np.arange(90) % 3, "y": np.arange(30) % 2,
    }  # fmt: skip
    arrays.update(changes)
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def config(name: str = "c", **settings: object) -> Path:
        path = tmp_path / f"{name}.yaml"
        values: dict[str, object] = {
            "dataset": str(tmp_path / "d.npz"), "out": str(tmp_path / "runs"), "num_layers": 1, "hidden_channels": 4,
            "epochs": 1, "accelerator": "cpu", "threads": 1,
        }  # fmt: skip
        path.write_text(yaml.safe_dump({**values, **settings}))
        return path

    torch.set_num_threads(1)
    write_npz(tmp_path / "d.npz")
    return config


def files(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def refused(tmp_path: Path, message: str, *args: object) -> None:
    before = files(tmp_path)
    result = CliRunner().invoke(app, [str(a) for a in args])
    assert result.exit_code == 2, result.output
    lines = [line for line in result.stderr.splitlines() if line]
    assert len(lines) == 1 and message in lines[0], result.stderr
    assert files(tmp_path) == before


@pytest.mark.parametrize("command", ["train {}", "convert {} {}.npz", "compile {} --out {}.shards"], ids=lambda c: c.split()[0])
def test_an_extra_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setitem(sys.modules, "rdkit.Chem", None)
    table = tmp_path / "m.csv"
    table.write_text("smiles,active\nCC,1\nCCO,0\n")
    options = ["--no-progress"] * (not command.startswith("convert"))
    result = CliRunner().invoke(app, [*command.format(table, table).split(), *options])
    assert result.exit_code == 2, result.output
    assert "Error: Reading SMILES needs rdkit: pip install 'enfa[chem]'" in result.stderr.splitlines()


def test_a_table_where_graphs_are_wanted(tmp_path: Path) -> None:
    for name in ("m.csv", "m.tsv"):
        (tmp_path / name).write_text("smiles\tactive\nCC\t1\n")
        refused(tmp_path, "enfa convert makes an .npz file of it", "inspect", tmp_path / name)
        given = ("power", tmp_path / name, "--policy", "node_marking")
        refused(tmp_path, "enfa convert makes an .npz file of it", *given)


@pytest.mark.parametrize(("name", "said"), [
    ("m.csv.gz", "is not YAML: "), ("m.smi", "Expected 'setting: value' lines, got str"), ("m", "got str"),
])  # fmt: skip
def test_a_table_of_another_name(tmp_path: Path, name: str, said: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"smiles,y\nCC,1\n") if name.endswith("gz") else b"CC\nCCO\n")
    refused(tmp_path, said, "train", path)
    refused(tmp_path, "(a table of molecules ends in .csv or .tsv, a file of graphs in .npz)", "train", path)
    yaml_file = tmp_path / "m.yaml"
    yaml_file.write_text("CC")
    result = CliRunner().invoke(app, ["train", str(yaml_file)])
    assert "got str" in result.stderr and ".csv or .tsv" not in result.stderr


def test_missing_dataset(tmp_path: Path, write: Callable[..., Path]) -> None:
    refused(tmp_path, "There is no dataset file", "train", write(dataset=str(tmp_path / "no.npz")), "--no-progress")
    refused(tmp_path, "did you mean 'PROTEINS'?", "train", write(dataset="PROTEIN/S"), "--no-progress")


def test_label_outside_its_classes(tmp_path: Path, write: Callable[..., Path]) -> None:
    y = np.zeros((30, 1), np.float32)
    y[7] = 3
    write_npz(tmp_path / "bad.npz", y=y)
    refused(tmp_path, "graph 7 to have 0, 1 or NaN", "train", write(dataset=str(tmp_path / "bad.npz")), "--no-progress")


def test_empty_split(tmp_path: Path, write: Callable[..., Path]) -> None:
    write_npz(tmp_path / "bad.npz", split_train=np.arange(20), split_valid=np.arange(0), split_test=np.arange(20, 30))
    refused(tmp_path, "split 'valid' is empty", "train", write(dataset=str(tmp_path / "bad.npz")), "--no-progress")


def test_wrong_settings(tmp_path: Path, write: Callable[..., Path]) -> None:
    refused(tmp_path, "Expected lr to be a number", "train", write(), "lr=fast")
    refused(tmp_path, "did you mean 'epochs'?", "train", write(), "epoch=3")
    refused(tmp_path, "There is no config file", "train", tmp_path / "none.yaml")
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "mine.yaml").touch()
    refused(tmp_path, "configs/mine.yaml?", "train", tmp_path / "mine")
    refused(tmp_path, "Expected conv to be one of", "train", write(), "conv=gim", "--no-progress")
    refused(tmp_path, "did you mean 'node_marking'?", "train", write(), "policy=node_markin", "--no-progress")
    refused(tmp_path, "got node_marking: use neighbor_marking", "train", write(), "model=i2gnn", "--no-progress")
    policy = "policy=ego_nets:hops=2:mark=true"
    said = "got 'ego_nets:hops=2:mark=true': write policy=ego_nets policy_params.hops=2 policy_params.mark=true"
    refused(tmp_path, said, "train", write(), policy, "--no-progress")
    refused(tmp_path, "has folds 0 to 9, got fold 10", "train", write(), "fold=10", "--no-progress")
    refused(tmp_path, "devices=2, PyTorch sees 0", "train", write(), "devices=2", "accelerator=gpu", "--no-progress")
    refused(tmp_path, "numbers such as 0-9", "sweep", write(), "--folds", "a-b")
    for threads in (0, -1):
        message = f"Expected threads >= 1, or null for as many as there are cores, got {threads}"
        refused(tmp_path, message, "train", write(), f"threads={threads}")


def test_a_dataset_where_a_config_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused(tmp_path, "CEXP is a dataset: write 'dataset: CEXP' into a .yaml file", "train", "CEXP")
    monkeypatch.chdir(Path(__file__).parents[2])
    refused(tmp_path, "CSL is a dataset: name one of configs/CSL-ds-nm.yaml, configs/CSL-dss-nm.yaml", "train", "CSL")


def test_settings_as_options(tmp_path: Path, write: Callable[..., Path]) -> None:
    for option, said in (
        ("--epochs", "No such option: --epochs. It is a setting: epochs=VALUE"), ("--batch-size", "batch_size=VALUE"),
        ("--epoch", "No such option: --epoch"),
    ):  # fmt: skip
        result = CliRunner().invoke(app, ["train", str(write()), option, "2"])
        text = " ".join(result.output.replace("│", " ").split())
        assert result.exit_code == 2 and said in text, text
    result = CliRunner().invoke(app, ["train", str(write()), "--targets", "a"])
    text = " ".join(result.output.replace("│", " ").split())
    said = text.partition("No such option: --targets")[2]
    assert "--target" in said and "--task" not in said and "setting" not in said, text
    assert "lr=VALUE" in CliRunner().invoke(app, ["sweep", str(write()), "--lr", "2"]).output
    result = CliRunner().invoke(app, ["inspect", str(tmp_path / "d.npz"), "--epochs", "2"])
    assert result.exit_code == 2 and "setting" not in result.output


def test_a_folder_where_a_config_is_wanted(tmp_path: Path, write: Callable[..., Path]) -> None:
    assert CliRunner().invoke(app, ["train", str(write()), "--no-progress"]).exit_code == 0
    run = tmp_path / "runs" / "c" / "fold-0-seed-0"
    result = CliRunner().invoke(app, ["train", str(run), "--resume", "epochs=2", "--no-progress"])
    assert result.exit_code == 0 and "all epochs: 2 epochs" in result.stdout, result.output
    refused(tmp_path, f"{run} holds a run already: --resume continues it", "train", run)
    kind = "Expected a config, a file of data or the folder of a run, got"
    one = f"{kind} {run.parent} with fold-0-seed-0: name one of these"
    refused(tmp_path, one, "train", run.parent, "--resume")
    refused(tmp_path, f"{kind} the folder {tmp_path}, which has no config.yaml", "train", tmp_path, "--resume")
    again = f"{kind} the checkpoint {run / 'last.ckpt'}: enfa train {run} --resume goes on with its run"
    refused(tmp_path, again, "train", run / "last.ckpt", "--resume")
    moved = run.parents[2] / "moved" / "d" / run.name
    moved.parent.mkdir(parents=True)
    run.rename(moved)
    refused(tmp_path, f"{moved} holds the settings of a run in {run}: Expected", "train", moved, "--resume")
    there = [f"out={moved.parents[1]}", "name=d", "epochs=3", "--no-progress"]
    result = CliRunner().invoke(app, ["train", str(moved), "--resume", *there])
    assert result.exit_code == 0 and "all epochs: 3 epochs" in result.stdout, result.output


def test_an_ensemble_where_one_run_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "ensemble.json").write_text('{"runs": ["fold-0-seed-0", "fold-0-seed-1"]}')
    said = f"got an ensemble of 2: name one of its runs, such as {tmp_path / 'fold-0-seed-0'}"
    refused(tmp_path, said, "test", tmp_path)
    refused(tmp_path, said, "test", tmp_path / "ensemble.json")
    (tmp_path / "c.yaml").write_text("dataset: CSL")
    refused(tmp_path, said, "test", tmp_path / "c.yaml", "--checkpoint", tmp_path / "ensemble.json")
    refused(tmp_path, said, "explain", tmp_path / "ensemble.json", tmp_path / "c.yaml")


@pytest.mark.parametrize("text", ["[1", "{a", "'x", "!!python/name:os.system", "a: b: c", "@", "&x *y"])
def test_broken_yaml(tmp_path: Path, write: Callable[..., Path], text: str) -> None:
    for command in ("train", "test", "sweep"):
        refused(tmp_path, f"Expected a value for lr, got {text!r}", command, write(), f"lr={text}")
    refused(tmp_path, "Expected a value for a, got", "train", write(), f"a={text}")
    if ":" not in text:  # which would begin the next parameter
        policy = f"ego_nets:hops={text}"
        refused(tmp_path, "Expected YAML in the policy", "inspect", tmp_path / "d.npz", "--policy", policy)
    bad = tmp_path / "bad.yaml"
    bad.write_text(f"dataset: {text}\n")
    refused(tmp_path, f"{bad} is not YAML: ", "train", bad)


def test_policies_that_are_none(tmp_path: Path, write: Callable[..., Path]) -> None:
    write()
    refused(tmp_path, "Expected YAML in the policy '{name: ['", "inspect", tmp_path / "d.npz", "--policy", "{name: [")
    refused(tmp_path, "Expected a policy such as {name", "inspect", tmp_path / "d.npz", "--policy", "{nodes}")
    config = write(policy_params=None)
    refused(tmp_path, "Expected policy_params to be a mapping, got None", "train", config, "policy_params.isolate=true")


def test_results_that_are_none(tmp_path: Path, write: Callable[..., Path]) -> None:
    config, empty = write(), tmp_path / "empty"
    empty.mkdir()
    refused(tmp_path, f"Expected at least one result file in {empty}, got none", "table", empty)
    refused(tmp_path, "Expected numbers such as 0-9 or 0,2,5, got '3-1'", "sweep", config, "--seeds", "3-1")
    refused(tmp_path, f"Expected --results to be a folder, got the file {config}", "sweep", config, "--results", config)
    (tmp_path / "junk.npz").write_bytes(b"junk")
    said = "no .npz file of plain arrays (it holds pickled objects, or is a file of another kind)"
    refused(tmp_path, said, "inspect", tmp_path / "junk.npz")


def test_runs_are_not_overwritten_nor_mixed_up(tmp_path: Path, write: Callable[..., Path]) -> None:
    config = write()
    refused(tmp_path, "There is no run to resume", "train", config, "--resume")
    assert CliRunner().invoke(app, ["train", str(config), "--no-progress"]).exit_code == 0
    refused(tmp_path, "holds a run already: --resume continues it", "train", config)
    refused(tmp_path, "fold-0-seed-0 holds a run already", "train", config, "--ensemble", "2")
    table = tmp_path / "m.csv"  # with rows that cannot be read, of which a list would be written
    table.write_text("smiles,active\n" + "C,1\nCC,0\n" * 20 + "?,1\n" * 21)
    place = (f"out={tmp_path / 'runs'}", "name=c")
    refused(tmp_path, "holds a run already", "train", table, *place, "--skip-bad", "--ensemble", 2)
    other = ("lr=0.1", "--resume", "--no-progress")
    refused(tmp_path, "cannot be resumed with other settings: lr is 0.001", "train", config, *other)
    refused(
        tmp_path,
        "checkpoint of another model: hidden_channels is 4",
        "test",
        config,
        "hidden_channels=8",
        "--no-progress",
    )
    refused(tmp_path, "There is no checkpoint", "test", config, "--checkpoint", tmp_path / "no.ckpt")
    last = tmp_path / "runs" / "c" / "fold-0-seed-0" / "last.ckpt"
    write_npz(tmp_path / "more.npz", y=np.arange(30) % 3)
    other = write("other", dataset=str(tmp_path / "more.npz"))
    refused(tmp_path, "was trained for other data", "test", other, "--checkpoint", last, "--no-progress")
    broken = tmp_path / "broken.ckpt"
    broken.write_bytes(last.read_bytes()[:1000])
    refused(tmp_path, "is damaged", "test", config, "--checkpoint", broken)
    torch.save({"state_dict": {}}, broken)
    refused(tmp_path, "is no checkpoint of enfa train", "test", config, "--checkpoint", broken)


def test_nothing_in_a_checkpoint_is_executed(tmp_path: Path, write: Callable[..., Path]) -> None:
    class Touch:
        def __reduce__(self) -> tuple[object, ...]:
            return Path.touch, (tmp_path / "executed",)

    torch.save({"enfa": Touch()}, tmp_path / "evil.ckpt")
    refused(
        tmp_path,
        "is damaged, or no checkpoint of plain tensors",
        "test",
        write(),
        "--checkpoint",
        tmp_path / "evil.ckpt",
    )
    assert not (tmp_path / "executed").exists()


def test_predictions_are_not_overwritten(tmp_path: Path, write: Callable[..., Path]) -> None:
    config = write()
    assert CliRunner().invoke(app, ["train", str(config), "--no-progress"]).exit_code == 0
    last = tmp_path / "runs" / "c" / "fold-0-seed-0" / "last.ckpt"
    out = tmp_path / "p.csv"
    out.write_text("mine")
    refused(tmp_path, "--force replaces it", "predict", last, tmp_path / "d.npz", "--out", out)
    refused(tmp_path, "There is no input file", "predict", last, tmp_path / "no.npz", "--out", tmp_path / "q.csv")
    # what is read is missed first, whatever stands where the predictions are to go
    refused(tmp_path, "There is no checkpoint", "predict", tmp_path / "no.ckpt", tmp_path / "no.npz", "--out", out)
    refused(tmp_path, "There is no input file", "predict", last, tmp_path / "no.npz", "--out", out)
    said = "There is no input file CCO: Expected a .csv file with a column smiles"
    refused(tmp_path, said, "predict", last, "CCO", "--out", tmp_path / "q.csv")
    folder = "Expected --out to be a file, got the folder"
    refused(tmp_path, folder, "predict", last, tmp_path / "d.npz", "--out", tmp_path, "--force")
    write_npz(tmp_path / "more.npz", node_label=np.arange(90) % 4)
    message = "Expected node features column 0 to be below 3, got 3"
    refused(tmp_path, message, "predict", last, tmp_path / "more.npz", "--out", tmp_path / "q.csv")
    (tmp_path / "bad.csv").write_text("name\nC\n")
    refused(
        tmp_path,
        "Expected --smiles to name a column, one of name, got none",
        "predict",
        last,
        tmp_path / "bad.csv",
        "--out",
        tmp_path / "q.csv",
    )
