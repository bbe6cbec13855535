import json
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from enfa.cli.app import app
from enfa.datasets import ATOM_CHANNELS, from_csv, from_npz
from enfa.datasets.own import graphs_from_npz
from enfa.datasets.own.table import read_table


def convert(*args: object) -> str:
    result = CliRunner().invoke(app, ["convert", *map(str, args)])
    assert result.exit_code == 0, result.output
    return result.stdout + result.stderr


def refused(message: str, *args: object) -> None:
    result = CliRunner().invoke(app, ["convert", *map(str, args)])
    assert result.exit_code == 2 and message in result.stderr, result.output


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    path.write_text("".join(json.dumps({"edges": [[0, 1], [1, 2]], "x": [0, 1, k], "y": k % 2}) + "\n" for k in range(4)))
    assert convert(path, tmp_path / "g.npz") == f"4 graphs in {tmp_path / 'g.npz'}\n"
    data = from_npz(tmp_path / "g.npz")
    assert data.graphs[3].edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]], "edges that stand once go both ways"
    assert (data.in_channels, data.labels.tolist()) == ([4], [0, 1, 0, 1])
    convert(path, tmp_path / "g.npz", "--edges", "both", "--force")
    assert from_npz(tmp_path / "g.npz").graphs[3].num_edges == 2
    refused("g.npz exists: --force replaces it", path, tmp_path / "g.npz")
    refused("Expected no --target but for a .csv file", path, tmp_path / "h.npz", "--target", "y")
    refused("Expected --edges to be auto, once or both", path, tmp_path / "h.npz", "--edges", "twice")
    refused("expected metric to be in", path, tmp_path / "h.npz", "--metric", "score")
    refused("the metric of a multiclass task is accuracy, got", path, tmp_path / "h.npz", "--metric", "ap")
    refused("Expected a file ending in .npz to write", path, tmp_path / "h.csv")
    refused("There is no input file", tmp_path / "no.jsonl", tmp_path / "h.npz")
    refused("Expected a file ending in .csv", tmp_path / "g.npz", tmp_path / "h.npz")
    with path.open("a") as file:
        file.write("{}\n")
    refused("line 5: '{}': Expected 'edges'", path, tmp_path / "h.npz")
    assert not (tmp_path / "h.npz").exists()
    assert "4 graphs in" in convert(path, tmp_path / "h.npz", "--skip-bad")


def test_molecules(tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    path = tmp_path / "m.csv"
    path.write_text("smiles,y,z\n" + "".join(f"{'C' * (k + 1)}O,{k / 3},{k % 2}\n" for k in range(12)) + "C(C,1,1\nCC,,\n")
    refused("1 of 14 rows cannot be read", path, tmp_path / "m.npz")
    convert(path, tmp_path / "m.npz", "--skip-bad")
    assert len(graphs_from_npz(tmp_path / "m.npz")) == 13, "without targets all molecules stay"
    said = convert(path, tmp_path / "y.npz", "--skip-bad", "--target", "y", "--split", "random")
    assert "1 row without a label left out" in said
    data, direct = from_npz(tmp_path / "y.npz"), from_csv(path, targets=["y"], skip_bad=True)
    assert (data.task, data.metric, data.targets, data.in_channels) == ("regression", "mae", ("y",), ATOM_CHANNELS)
    np.testing.assert_allclose(data.labels[:, 0], np.arange(12) / 3, rtol=1e-6)
    assert all(np.array_equal(data.split()[part], direct.split()[part]) for part in ("train", "valid", "test"))
    for one, other in zip(data.graphs, direct.graphs, strict=True):
        assert all(torch.equal(one[name], other[name]) for name in ("x", "edge_index", "edge_attr"))


@pytest.mark.parametrize("name", ["g.jsonl", "g.ndjson", "g.parquet"])
@pytest.mark.parametrize("words", ["train {}", "test {}", "sweep {}", "train c.yaml", "inspect {}", "compile {} --out out"])
def test_other_commands_name_convert(words: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if words.startswith(("train", "test", "sweep")):
        pytest.importorskip("lightning", reason="training needs the extra enfa[train]")
    monkeypatch.chdir(tmp_path)
    Path(name).write_text('{"edges": [[0, 1]]}\n')
    Path("c.yaml").write_text(f"dataset: {name}\n")
    result = CliRunner().invoke(app, words.format(name).split())
    told = f"Expected an .npz file of graphs, got {name}: enfa convert makes one of it"
    assert result.exit_code == 2 and told in result.stderr, result.output
    with pytest.raises(ValueError, match=told):  # as enfa predict and enfa explain read what is no .npz file
        read_table(name)
