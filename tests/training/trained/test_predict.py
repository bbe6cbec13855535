import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from enfa.cli.app import app
from enfa.datasets import ATOM_CHANNELS, BOND_CHANNELS, from_graphs, from_smiles
from enfa.training import fit, read_config
from enfa.training.checkpoint import trained_on
from enfa.training.settings.folder import BEST, LAST, folder_of
from enfa.training.start.prepare import prepare
from enfa.training.trained.ensemble import fit_ensemble
from enfa.training.trained.explain import explain_one
from enfa.training.trained.members import members
from enfa.training.trained.predict import predict, read_smiles


def test_predictions_of_an_npz_file(tmp_path: Path, config_file: Callable[..., Path], npz: Path) -> None:
    config = read_config(config_file())
    fit(config, progress=False)
    last, out = folder_of(config) / LAST, tmp_path / "p.csv"
    with np.load(npz) as file:
        np.savez(tmp_path / "unlabelled.npz", **{k: file[k] for k in file.files if k != "y"})
    result = CliRunner().invoke(app, ["predict", str(last), str(tmp_path / "unlabelled.npz"), "--out", str(out)])
    assert result.exit_code == 0, result.output
    score = float((folder_of(config) / "metrics.csv").read_text().split()[-1].split(",")[-1])
    assert result.stderr.splitlines() == [
        f"{last}: trained on {npz} (fold 0, seed 0) with node_marking, ds, gin; epoch 3, validation accuracy {score:.4f}"
    ]
    terminal = CliRunner(env={"FORCE_COLOR": "1"}).invoke(app, ["predict", str(last), str(npz), "--out", str(out), "--force"])
    assert terminal.exit_code == 0 and "predicting" in terminal.stderr
    with np.load(npz) as file:
        np.savez(tmp_path / "none.npz", **{k: file[k] for k in file.files if k not in ("x", "node_label", "y")})
    bare = CliRunner().invoke(app, ["predict", str(last), str(tmp_path / "none.npz"), "--out", str(tmp_path / "q.csv")])
    assert bare.exit_code == 2 and "expected features of nodes" in bare.stderr and not (tmp_path / "q.csv").exists()
    before = npz.read_bytes()
    over = CliRunner().invoke(app, ["predict", str(last), str(npz), "--out", str(npz), "--force"])
    assert over.exit_code == 2 and "another file than the one that is read" in over.stderr and npz.read_bytes() == before
    with out.open() as file:
        rows = list(csv.DictReader(file))
    run = prepare(config)
    run.module.load_state_dict(torch.load(last, weights_only=True)["state_dict"])
    expected = run.module.eval()(run.batches.compiled[:]).softmax(1).detach()
    assert list(rows[0]) == ["graph", "class", "p0", "p1"] and len(rows) == 40
    np.testing.assert_allclose([[float(r["p0"]), float(r["p1"])] for r in rows], expected, atol=1e-6)
    assert [int(r["class"]) for r in rows] == expected.argmax(1).tolist()


@pytest.mark.parametrize("cache", ["c", "c.enfa"])
def test_a_checkpoint_names_no_file_to_read_or_write(
    tmp_path: Path, config_file: Callable[..., Path], npz: Path, cache: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the cache of the training graphs, nor the dataset and the folders that the settings hold."""
    (tmp_path / "trained").mkdir()
    monkeypatch.chdir(tmp_path / "trained")
    config = read_config(config_file(epochs=1, cache=cache, out="runs"))
    fit(config, progress=False)
    given, new = tmp_path / "given.ckpt", tmp_path / "new.npz"
    (folder_of(config) / LAST).rename(given)
    npz.rename(new)  # what it was trained on is not there any more
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    first = predict(given, new)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert predict(given, new) == first
    assert not list((tmp_path / "elsewhere").iterdir())
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    (tmp_path / "elsewhere" / "c.enfa").write_text("no dataset")  # which would be refused
    assert predict(given, new) == first


def test_a_model_says_what_it_was_trained_on(config_file: Callable[..., Path], npz: Path) -> None:
    settings = {"policy": "node_deletion", "policy_params": {"isolate": True}, "model": "dss", "fold": 2, "seed": 5}
    config = read_config(config_file(epochs=1, **settings))
    fit(config, progress=False)
    line = trained_on(folder_of(config) / BEST)
    assert line.startswith(f"trained on {npz} (fold 2, seed 5) with node_deletion(isolate=True), dss, gin; epoch 0, valid")


def test_smiles_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name,SMILES\nwater,O\nmethane,C\n")
    (tmp_path / "a.smi").write_text("O water\n\nC\tmethane\n")
    assert read_smiles(tmp_path / "a.csv") == read_smiles(tmp_path / "a.smi") == ["O", "C"]
    (tmp_path / "none.smi").write_text("\n")
    with pytest.raises(ValueError, match="at least one row"):
        read_smiles(tmp_path / "none.smi")


def test_predictions_of_smiles(tmp_path: Path, config_file: Callable[..., Path]) -> None:
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    smiles = ["CCO", "c1ccccc1", "CC(=O)O", "CCN", "CCCC", "C#N", "CO", "CC", "CCl", "C=C"] * 3
    y = np.arange(30, dtype=np.float32)[:, None] % 2
    data = from_graphs(from_smiles(smiles, y), in_channels=ATOM_CHANNELS, edge_channels=BOND_CHANNELS)
    flat = {
        "num_nodes": [g.num_nodes for g in data.graphs], "num_edges": [g.num_edges for g in data.graphs],
        "edges": np.concatenate([g.edge_index.T for g in data.graphs]), "x": np.concatenate([g.x for g in data.graphs]),
        "edge_attr": np.concatenate([g.edge_attr for g in data.graphs]), "y": y,
    }  # fmt: skip
    np.savez(tmp_path / "m.npz", **flat)
    config = read_config(config_file(dataset=str(tmp_path / "m.npz"), conv="gine", epochs=1))
    fit(config, progress=False)
    (tmp_path / "new.smi").write_text("CCO\nCC(=O)O\n")
    rows = predict(folder_of(config) / LAST, tmp_path / "new.smi")
    assert [row["smiles"] for row in rows] == ["CCO", "CC(=O)O"]
    assert all(0 < row["p0"] < 1 for row in rows)


def test_classes_are_called_what_they_are_in_the_file(config_file: Callable[..., Path], make_npz: Callable[..., Path]) -> None:
    """The file's 1 and 2 are no 0 and 1."""
    path = make_npz(1 + np.arange(40) % 2)
    config = read_config(config_file(dataset=str(path), num_layers=1, hidden_channels=4, epochs=1))
    folder = fit_ensemble(config, 2, progress=False)
    for source, more in ((members(folder)[0], []), (folder, ["_deviation"])):
        row = predict(source, path)[0]
        columns = [f"probability_{k}{end}" for k in "12" for end in ("", *more)]
        assert list(row) == ["graph", "class", *columns]
        assert row["class"] == max("12", key=lambda k: row[f"probability_{k}"])
    found = [explain_one(members(folder)[0], str(path), target=name) for name in "12"]
    assert [(one.explanation.output, one.target) for one in found] == [(0, "class 1"), (1, "class 2")]
    with pytest.raises(ValueError, match="Expected --target to be one of 1, 2, got '0'"):
        explain_one(members(folder)[0], str(path), target="0")


def test_a_model_of_directed_edges_asks_for_their_directions(
    tmp_path: Path, config_file: Callable[..., Path], npz: Path
) -> None:
    """A file in which each edge stands once would be read with the reverse of each."""
    with np.load(npz) as file:
        arrays = dict(file)
    np.savez(tmp_path / "directed.npz", **arrays, directions="both")
    for path, told in ((tmp_path / "directed.npz", False), (npz, True)):
        config = read_config(config_file(dataset=str(path), num_layers=1, hidden_channels=4, epochs=1, name=path.stem))
        fit(config, progress=False)
        last = folder_of(config) / LAST
        assert len(predict(last, tmp_path / "directed.npz")) == 40
        for read in (lambda last=last: predict(last, npz), lambda last=last: explain_one(last, str(npz))):
            if told:
                read()
            else:
                with pytest.raises(
                    ValueError, match="expected an array 'directions', because the model was trained on directed"
                ):
                    read()
