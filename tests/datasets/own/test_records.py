import json
from pathlib import Path
from typing import Any

import pytest
import torch

from enfa.datasets import BadRows
from enfa.datasets.own.records import read_records

RECORDS: list[dict[str, Any]] = [
    {"edges": [[0, 1], [1, 2]], "x": [[1, 0], [2, 0], [1, 1]], "edge_attr": [3, 4], "y": 0, "split": "train", "id": "a"},
    {"edges": [], "x": [[5, 0]], "edge_attr": [], "y": 1, "split": "val"},
    {"edge_index": [[0], [1]], "x": [[1, 0], [1, 0]], "edge_attr": [2], "y": 1, "split": "test"},
]


def write(tmp_path: Path, *records: Any) -> Path:
    path = tmp_path / "g.jsonl"
    path.write_text("\n\n".join(r if isinstance(r, str) else json.dumps(r) for r in records) + "\n")
    return path


def parquet(tmp_path: Path, records: list[dict[str, Any]]) -> Path:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    import pyarrow.parquet as files

    files.write_table(pa.Table.from_pylist(records), tmp_path / "g.parquet")
    return tmp_path / "g.parquet"


def test_a_mark_that_windows_begins_files_with_is_no_part_of_a_record(tmp_path: Path) -> None:
    path = write(tmp_path, *RECORDS)
    path.write_text("\ufeff" + path.read_text(), encoding="utf-8")
    assert len(read_records(path).graphs) == 3


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_node_and_edge_lists(tmp_path: Path, kind: str) -> None:
    edges = [r if "edges" in r else {**r, "edges": [list(e) for e in zip(*r["edge_index"])]} for r in RECORDS]
    path = write(tmp_path, *RECORDS) if kind == "json" else parquet(tmp_path, [{**r, "edge_index": None} for r in edges])
    found = read_records(path)
    assert [g.edge_index.tolist() for g in found.graphs] == [[[0, 1], [1, 2]], [[], []], [[0], [1]]]
    assert [g.x.tolist() for g in found.graphs] == [r["x"] for r in RECORDS]
    assert [g.edge_attr.tolist() for g in found.graphs] == [[[3], [4]], [], [[2]]]
    assert all(g.x.dtype == g.edge_attr.dtype == g.y.dtype == torch.int64 for g in found.graphs), (
        "whole numbers stay categories"
    )
    assert [g.y.tolist() for g in found.graphs] == [[0], [1], [1]]
    assert found.splits is not None and {k: v.tolist() for k, v in found.splits.items()} == {
        "train": [0],
        "valid": [1],
        "test": [2],
    }
    assert (found.level, found.bad) == ("graph", [])


def test_labels(tmp_path: Path) -> None:
    tasks = read_records(write(tmp_path, *({"edges": [], "num_nodes": 2, "y": y} for y in ([1, None], [0, 1]))))
    assert tasks.graphs[0].num_nodes == 2 and tasks.graphs[0].y.isnan().tolist() == [[False, True]]
    assert tasks.graphs[1].y.tolist() == [[0, 1]] and tasks.splits is None
    numbers = read_records(write(tmp_path, {"edges": [], "num_nodes": 1, "y": 0.5}))
    assert numbers.graphs[0].y.tolist() == [0.5]
    nodes = read_records(write(tmp_path, {"edges": [], "num_nodes": 2, "node_y": [0.5, 1]}))
    assert nodes.level == "node" and nodes.graphs[0].y.tolist() == [[0.5], [1.0]]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("{no json", "no JSON"),
        ("[1, 2]", "an object with 'edges', got list"),
        ({"x": [1]}, "'edges', or instead of it 'edge_index', got x"),
        ({"edges": [[0, 1, 2]], "num_nodes": 3, "y": 1}, "pairs of node numbers, got int64 of shape [1, 3]"),
        ({"edges": [[0, 0.5]], "num_nodes": 3, "y": 1}, "pairs of node numbers, got float64"),
        ({"edges": [[0, 3]], "num_nodes": 3, "y": 1}, "edges between nodes 0 to 2, got 0 to 3"),
        ({"edges": [[0, 1]], "y": 1}, "'num_nodes' or 'x', got neither"),
        ({"edges": [], "num_nodes": "3", "y": 1}, "num_nodes to be a number of nodes, got '3'"),
        ({"edges": [], "num_nodes": 3, "x": [1, 2], "y": 1}, "x to have 3 rows, got 2"),
        ({"edges": [], "x": [[1], [2, 3]], "y": 1}, "x to be numbers, as many in every row"),
        ({"edges": [], "x": ["C"], "y": 1}, "x to be numbers, got <U1"),
        ({"edges": [], "x": [1], "y": 1, "split": "dev"}, "split to be train, valid or test, got 'dev'"),
        ({"edges": [], "x": [1], "y": [1, 0]}, "y with one number, as before, got 2 columns"),
        ({"edges": [], "x": [1]}, "y with one number, as before, got nothing"),
    ],
)
def test_bad_records_are_told_by_line(tmp_path: Path, wrong: Any, why: str) -> None:
    good = {"edges": [[0, 1]], "x": [7, 8], "y": 1}
    path = write(tmp_path, good, wrong, good, wrong)
    with pytest.raises(BadRows, match="2 of 4 rows") as error:
        read_records(path)
    assert [row.line for row in error.value.rows] == [3, 7] and all(why in row.why for row in error.value.rows)
    found = read_records(path, skip_bad=True)
    assert len(found.graphs) == 2 and found.bad == error.value.rows


def test_refuses(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="There is no input file"):
        read_records(tmp_path / "no.jsonl")
    with pytest.raises(ValueError, match="at least one graph"):
        read_records(write(tmp_path))
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    (tmp_path / "bad.parquet").write_bytes(b"PAR0")
    with pytest.raises(ValueError, match="Expected a Parquet file"):
        read_records(tmp_path / "bad.parquet")
