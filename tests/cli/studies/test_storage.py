from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import enfa.cli.studies.storage
from enfa.cli.app import app


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """Eight random trees as an .npz file."""
    rng, path = np.random.default_rng(0), tmp_path / "trees.npz"
    nodes = rng.integers(5, 12, 8)
    edges = [np.stack([np.arange(1, n), [rng.integers(0, v) for v in range(1, n)]], 1) for n in nodes]
    np.savez(path, num_nodes=nodes, num_edges=nodes - 1, edges=np.concatenate(edges), y=np.arange(8) % 2,
             node_label=rng.integers(0, 3, nodes.sum()))  # fmt: skip
    return path


@pytest.fixture
def run(sample: Path, tmp_path: Path) -> Any:
    def invoke(*options: str, out: str = "storage.json") -> Result:
        names = ["storage", "--datasets", str(sample), "--layers", "2-3", "--out", str(tmp_path / "results" / out)]
        return CliRunner().invoke(app, [*names, *options])

    return invoke


def test_tables_and_result_file(run: Any, tmp_path: Path) -> None:
    result = run()
    assert result.exit_code == 0, result.output
    for word in ("trees", "node marking", "edge deletion", "distinct", "L = 2", "L = 3", "What the bytes are"):
        assert word in result.output
    stored = json.loads((tmp_path / "results" / "storage.json").read_text())
    assert stored["machine"]["cores"] >= 1 and stored["layers"] == [2, 3] and stored["layout"] == "paper"
    assert [r["policy"] for r in stored["results"]] == ["node_marking", "node_deletion", "edge_deletion"]
    nodes = np.load(tmp_path / "trees.npz")["num_nodes"]
    bags = stored["results"][0]["entries"][0]
    assert bags["bytes"] == int(16 * (nodes * (2 * nodes - 2)).sum() + 8 * nodes.sum() + 16 * (2 * nodes - 2).sum())


def test_json_and_layout(run: Any) -> None:
    paper, esan = (
        json.loads(run("--json", "--policies", "node-marking", "--layout", layout, out=f"{layout}.json").stdout)
        for layout in ("paper", "esan")
    )
    sizes = [[e["bytes"] for e in found["results"][0]["entries"]] for found in (paper, esan)]
    assert sizes[1][0] > sizes[0][0] and sizes[1][1] > sizes[0][1]
    assert sizes[1][2] == sizes[0][2]  # the distinct file is what it is


def test_what_is_there_is_not_counted_again(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []
    real = enfa.cli.studies.storage.measure_storage

    def measure(*args: Any) -> Any:
        counted.append(type(args[1]).__name__)
        return real(*args)

    monkeypatch.setattr(enfa.cli.studies.storage, "measure_storage", measure)
    run("--policies", "node_marking")
    first = run().output
    assert counted == ["NodeMarking", "NodeDeletion", "EdgeDeletion"]
    assert run().output.endswith(first[first.index("MB on disk") :]) and len(counted) == 3
    run("--fresh", "--policies", "node_marking")
    run("--layers", "4", "--policies", "node_marking")  # another table: nothing of the old one serves
    assert counted[3:] == ["NodeMarking", "NodeMarking"]


def test_plot(run: Any, tmp_path: Path) -> None:
    assert run("--plot", str(tmp_path / "x.png")).exit_code == 0
    assert (tmp_path / "x.png").read_bytes()[1:4] == b"PNG"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--policies", "node_markng"], "did you mean 'node_marking'"),
        (["--layers", "two"], "such as 4 or 2-5"),
        (["--layers", "5-2"], "at least one number of layers"),
        (["--layers", "0"], "each >= 1"),
        (["--layout", "esn"], "did you mean 'esan'"),
        (["--datasets", "missing.npz"], "missing.npz: no such file"),
        (["--datasets", ","], "at least one dataset"),
    ],
)
def test_mistakes(run: Any, options: list[str], message: str) -> None:
    result = run(*options)
    assert result.exit_code == 2 and message in result.output
