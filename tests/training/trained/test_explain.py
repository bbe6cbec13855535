"""``enfa explain`` on files of graphs and on molecules."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import enfa
from enfa.cli.app import app
from enfa.datasets.molecules import ATOM_CHANNELS, BOND_CHANNELS
from enfa.training import read_config
from enfa.training.settings.config import Config
from enfa.training.settings.folder import BEST, folder_of
from enfa.training.trained.explain import read_one

Made = tuple[Path, Path, bytes]


def run(*words: object) -> str:
    result = CliRunner().invoke(app, ["explain", *(str(word) for word in words)])
    assert result.exit_code in (0, 2), result.output
    return " ".join(result.output.split())


@pytest.fixture
def molecules(tmp_path: Path) -> Path:
    """A model of two numbers of molecules, in their own units."""
    return saved(tmp_path)


def saved(tmp_path: Path, **more: object) -> Path:
    torch.manual_seed(0)
    model = enfa.DSGNN(ATOM_CHANNELS, 8, 2, 2, conv="gine", edge_channels=BOND_CHANNELS)
    settings = Config(**{"dataset": "x.npz", **more}, conv="gine", num_layers=2, hidden_channels=8).to_dict()
    problem = {
        "task": "regression", "metric": "mae", "num_outputs": 2, "in_channels": ATOM_CHANNELS, "edge_channels": BOND_CHANNELS,
        "targets": ["gap", "mu"], "mean": [1.0, 2.0], "std": [10.0, 0.5],
    }  # fmt: skip
    model.task = {"settings": settings, "problem": problem}
    model.save_pretrained(tmp_path / "model", enfa.NodeMarking())
    return tmp_path / "model"


def test_a_graph_of_a_file(trained: Made, tmp_path: Path) -> None:
    path, npz, _ = trained
    best, out = folder_of(read_config(path)) / BEST, tmp_path / "new" / "e.png"
    assert "logit" in run(best, npz, "--row", 7, "--out", out)
    found = json.loads(out.with_suffix(".json").read_text())
    model = enfa.load(best)
    graph, smiles = read_one(str(npz), 7)
    plan = enfa.make_plan([graph], model.policy, model)
    assert smiles is None and found["outputs"] == pytest.approx(model(plan)[0].tolist(), abs=1e-9)
    assert found["output"] == int(model(plan)[0].argmax()) and found["target"] == f"class {found['output']}"
    again = enfa.explain(model, model.policy, graph)
    assert [n["gradient"] for n in found["nodes"]] == pytest.approx(again.gradient.tolist())
    assert again.left_out is not None and [n["left_out"] for n in found["nodes"]] == pytest.approx(again.left_out.tolist())
    assert out.read_bytes()[:4] == b"\x89PNG"
    assert "exists: --force replaces it" in run(best, npz, "--out", out)
    before = out.with_suffix(".json").read_text()  # the folder of a run is its best checkpoint
    assert "logit" in run(best.parent, npz, "--row", 7, "--out", out, "--force")
    assert out.with_suffix(".json").read_text() == before
    assert "class 0" in run(best, npz, "--out", out, "--force", "--target", 0)
    assert "Expected --row from 0 to 39" in run(best, npz, "--row", 40, "--out", tmp_path / "f.svg")


def test_molecules_in_units_of_the_data(molecules: Path, tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="molecules need the extra enfa[chem]")
    table = tmp_path / "new.csv"
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([["name", "SMILES"], ["wrong", "not a molecule"], ["ethanol", "CCO"]])
    out = tmp_path / "e.svg"
    said = run(molecules, table, "--row", 1, "--target", "gap", "--out", out)
    assert "gap: prediction" in said, said
    found, drawn = json.loads(out.with_suffix(".json").read_text()), out.read_text()
    assert "</svg>" in drawn and drawn.count("<ellipse") == 6  # three atoms in two panels
    assert [n["atom"] for n in found["nodes"]] == ["C", "C", "O"] and found["units"] == "the data's"
    graph, _ = read_one("CCO", 0)
    model = enfa.load(molecules).double()
    plain = enfa.explain(model, model.policy, graph, output=0)
    assert plain.left_out is not None
    assert found["prediction"] == pytest.approx(10 * plain.prediction + 1)
    assert [n["gradient"] for n in found["nodes"]] == pytest.approx((10 * plain.gradient).tolist())
    assert [n["left_out"] for n in found["nodes"]] == pytest.approx((10 * plain.left_out).tolist())
    assert "mu: prediction" in run(molecules, "CCO", "--target", 1, "--out", tmp_path / "f.png")
    for words, message in [
        (["CCO"], "Expected --target, one of gap, mu, for a model with several, got none"),
        (["CCO", "--target", "x"], "Expected --target to be one of gap, mu, got 'x'"),
        (["C1CC", "--target", "mu"], "Expected a file that exists, or a molecule to be a SMILES string, got 'C1CC'"),
        ([table, "--target", "mu"], f"Expected row 0 of {table} to be a SMILES string, got 'not a molecule'"),
        ([tmp_path / "no.csv", "--target", "mu"], "There is no input file"),
        (["CCO", "--target", "mu", "--node", 1], "Expected outputs for each of 3 nodes, in order, to explain node 1, got 1"),
        (["CCO", "--out", tmp_path / "e.gif"], "Expected --out to end in .svg or .png"),
    ]:
        where = [] if "--out" in words else ["--out", tmp_path / "g.svg"]
        assert message.replace(" ", "") in run(molecules, *words, *where).replace(" ", ""), words
    assert not (tmp_path / "g.svg").exists()


def test_molecules_stand_in_the_column_that_the_model_was_trained_with(tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="molecules need the extra enfa[chem]")
    model, out = saved(tmp_path, dataset="m.csv", smiles="structure"), tmp_path / "e.svg"
    (tmp_path / "new.csv").write_text("smiles,structure\nCCO,CCN\n")  # and another column that has the usual name
    assert "gap: prediction" in run(model, tmp_path / "new.csv", "--target", "gap", "--out", out)
    assert json.loads(out.with_suffix(".json").read_text())["smiles"] == "CCN"
    (tmp_path / "new.csv").write_text("id,smiles\n1,CCO\n")  # where there is no such column, that of the usual name
    assert "gap: prediction" in run(model, tmp_path / "new.csv", "--target", "gap", "--out", out, "--force")
    assert json.loads(out.with_suffix(".json").read_text())["smiles"] == "CCO"
    (tmp_path / "new.csv").write_text("id,mine\n1,CCS\n")
    words = [model, tmp_path / "new.csv", "--target", "gap", "--out", out, "--force"]
    assert "Expected --smiles to name a column, one of id, mine, got none; molecules seem to stand in mine" in run(*words)
    assert "gap: prediction" in run(*words, "--smiles", "mine")
    assert json.loads(out.with_suffix(".json").read_text())["smiles"] == "CCS"
    assert "Expected a column 'yours', got id, mine" in run(*words, "--smiles", "yours")
    words[1] = "CCO"
    assert "Expected no --smiles but for a table of molecules, got CCO" in run(*words, "--smiles", "mine")
