from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from enfa.cli.app import app


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """Four paths of 3 to 6 nodes."""
    nodes, path = np.arange(3, 7), tmp_path / "paths.npz"
    edges = [np.stack([np.arange(n - 1), np.arange(1, n)], 1) for n in nodes]
    np.savez(path, num_nodes=nodes, num_edges=nodes - 1, edges=np.concatenate(edges), y=np.arange(4) % 2)
    return path


def _run(sample: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["inspect", str(sample), "--layers", "2", *options])


def test_table(sample: Path) -> None:
    result = _run(sample)
    assert result.exit_code == 0, result.output
    for word in ("paths, node marking, 2 layers", "Graphs 4, nodes 18", "conventional", "within hops", "distinct",
                 "expected speed-up", "86", "MB on disk"):  # fmt: skip
        assert word in result.output


def test_folder_of_the_environment(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENFA_DATA", str(sample.parent))
    for command in (["inspect", "paths"], ["storage", "--datasets", "paths", "--out", str(sample.parent / "storage.json")]):
        result = CliRunner().invoke(app, [*command, "--layers", "2", "--json"])
        assert result.exit_code == 0, result.output


def test_labels_of_nodes(tmp_path: Path) -> None:
    """Which files of graphs may have, and what is counted here does not read."""
    arrays = {"num_nodes": [3, 2], "num_edges": [2, 1], "edges": [[0, 1], [1, 2], [0, 1]]}
    path = tmp_path / "nodes.npz"
    np.savez(path, node_y=np.arange(5.0)[:, None], **{name: np.array(value) for name, value in arrays.items()})  # type: ignore[arg-type]
    assert json.loads(_run(path, "--json", "--shards").stdout)["nodes"] == 5
    out = tmp_path / "storage.json"
    result = CliRunner().invoke(app, ["storage", "--datasets", str(path), "--layers", "2", "--json", "--out", str(out)])
    assert result.exit_code == 0, result.output


def test_json_of_all_and_of_one_graph(sample: Path) -> None:
    whole = json.loads(_run(sample, "--json").stdout)
    assert whole["conventional"] == [9 + 16 + 25 + 36] * 2 and whole["graph"] is None
    one = json.loads(_run(sample, "--json", "--graph", "1", "--policy", "edge-deletion").stdout)
    assert one["graphs"] == 1 and one["subgraphs"] == 3 and one["conventional"] == [12, 12]
    assert one["policy"] == "EdgeDeletion()"


def test_a_dataset_by_name() -> None:
    result = CliRunner().invoke(app, ["inspect", "CSL", "--layers", "1", "--json"])
    found = json.loads(result.stdout)
    assert found["dataset"] == "CSL" and found["distinct"] == [3]  # far from the mark, marked, next to it
    assert found["subgraphs"] == 150 * 41


@pytest.mark.parametrize("options", [[], ["--graph", "2"]])
def test_plot(sample: Path, options: list[str], tmp_path: Path) -> None:
    result = _run(sample, *options, "--plot", str(tmp_path / "x.png"))
    assert result.exit_code == 0, result.output
    assert (tmp_path / "x.png").read_bytes()[1:4] == b"PNG"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--policy", "edge_deletoin"], "did you mean 'edge_deletion'"),
        (["--graph", "4"], "paths has graphs 0 to 3, got graph 4"),
        (["--graph", "-1"], "got graph -1"),
        (["--plot", "x.txt"], "Expected a file ending in .png, .pdf, .svg for --plot, got x.txt"),
    ],
)
def test_mistakes(sample: Path, options: list[str], message: str) -> None:
    result = _run(sample, *options)
    assert result.exit_code == 2 and message in result.output


def test_shards(sample: Path) -> None:
    found = json.loads(_run(sample, "--shards", "--json", "--memory", "1 MiB").stdout)["shards"]
    assert [entry["shards"] for entry in found["sizes"]] == [1, 2, 4] and found["memory"] == 2**20
    result = _run(sample, "--shards")
    assert result.exit_code == 0, result.output
    assert "A good choice: one shard of all 4 graphs is enough." in result.output and "more by" in result.output
    said = " ".join(_run(sample, "--shards", "--memory", "1 KiB").output.split())
    assert "A good choice: shards of 1 graph. Four such shards are open together" in said
    assert re.search(r"; each graph takes [\d.]+ kB in memory on average", said), said
    assert _run(sample, "--shards", "--memory", "much").exit_code != 0
