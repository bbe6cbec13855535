from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from enfa.cli.app import app
from enfa.datasets.official import fetch


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["power", *arguments])


def test_table_of_pairs_and_of_a_list(sample: Path) -> None:
    result = _run(str(sample), "--pairs", "--layers", "3")
    assert result.exit_code == 0, result.output
    assert "some, ds under node marking: pairs told apart" in result.output
    assert result.output.split("all")[1].split()[:4] == ["0", "1", "1", "2"]
    result = _run(str(sample), "--layers", "3", "--model", "dss")
    assert "classes of graphs" in result.output and result.output.split("all")[1].split()[:4] == ["2", "3", "3", "4"]


def test_one_pair(sample: Path) -> None:
    assert "told apart from 2 layers on" in _run(str(sample), "--pair", "0").output
    assert "the same up to 4 layers" in _run(str(sample), "--pair", "1", "--layers", "4").output
    wrong = _run(str(sample), "--pair", "2")
    assert wrong.exit_code == 2 and "pairs 0 to 1, got pair 2" in wrong.output


def test_every_model_under_its_own_policy(sample: Path) -> None:
    for model, policy in (
        ("dss", "NodeMarking(distances=None)"), ("ngnn", "EgoNets(hops=3, mark='distances', isolate=False)"),
        ("id_gnn", "EgoNets(hops=3, mark=True, isolate=False)"), ("gnn_ak", "EgoNets(hops=3, mark='distances', isolate=False)"),
        ("i2gnn", "NeighborMarking(hops=3, mark=True)"), ("sswl", "NodeMarking(distances=5)"),
        ("subgraphormer", "NodeMarking(distances=5)"),
    ):  # fmt: skip
        result = _run(str(sample), "--layers", "1", "--model", model, "--json")
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["policy"] == policy
        assert "No --policy was given: " in result.stderr and f"default for {model}" in result.stderr
    assert not _run(str(sample), "--layers", "1", "--policy", "node_marking", "--json").stderr


def test_sr25_by_i2gnn(shared_data: Path) -> None:
    result = _run("SR25", "--root", str(shared_data), "--layers", "3", "--model", "i2gnn", "--json")
    assert json.loads(result.stdout)["counts"]["all"][-1] == 15


def test_sr25_is_checked_as_in_training(sample: Path) -> None:
    (sample.parent / "SR25.npz").write_bytes(sample.read_bytes())
    result = _run("SR25", "--root", str(sample.parent))
    assert result.exit_code == 2 and "expected 15 graphs of 25 nodes" in result.output


def test_json_and_picture(sample: Path, tmp_path: Path) -> None:
    picture = tmp_path / "power.svg"
    result = _run(str(sample), "--pairs", "--layers", "2", "--json", "--plot", str(picture), "--policy", "edge-deletion")
    found = json.loads(result.stdout)
    assert found["first"] == [2, None] and found["of"] == "pairs" and found["policy"] == "EdgeDeletion()"
    assert picture.stat().st_size > 1000


def test_mistakes(sample: Path) -> None:
    for arguments, sentence in (
        (["nothing.npz"], "nothing.npz: no such file"), (["BREC", "--root", str(sample.parent)], "BREC.npz: not there"),
        (["SR25", "--root", "/nowhere"], "There is no folder /nowhere. "),
        ([str(sample), "--model", "dsss"], "did you mean 'dss'"),
        ([str(sample), "--model", "i2gnn", "--policy", "node_marking"], "got node_marking: use neighbor_marking"),
        ([str(sample), "--plot", "power.txt"], "Expected a file ending in"),
    ):  # fmt: skip
        result = _run(*arguments)
        assert result.exit_code == 2 and sentence in result.output, result.output


def test_brec_by_category(shared_data: Path) -> None:
    result = _run("BREC", "--root", str(shared_data), "--pair", "100", "--json")
    found = json.loads(result.stdout)
    assert found["dataset"] == "BREC, pair 100" and found["sizes"] == {"Regular": 1, "all": 1} and found["first"] == [2]


@pytest.mark.parametrize("command", ["power", "brec"])
def test_a_misspelt_name(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "TU", tmp_path.as_uri())  # where there is nothing
    for wrong, meant in (("BRECK", "BREC"), ("brec", "BREC"), ("SR2", "SR25")):
        result = CliRunner().invoke(app, [command, wrong, "--root", str(tmp_path)])
        assert result.exit_code == 2 and f"Unknown dataset '{wrong}'; did you mean '{meant}'? Known are BREC, " in result.stderr
