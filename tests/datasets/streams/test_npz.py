from __future__ import annotations

from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from enfa.datasets import NpzStream, from_npz


def arrays(**changes: Any) -> dict[str, np.ndarray]:
    """Five graphs: paths of 1 to 5 nodes, each edge once."""
    sizes = np.arange(1, 6)
    edges = [[i, i + 1] for size in sizes for i in range(size - 1)]
    found = {
        "num_nodes": sizes, "num_edges": sizes - 1, "edges": np.array(edges, np.uint8),
        "x": np.arange(15, dtype=np.uint8)[:, None] % 4, "edge_attr": np.arange(10) % 3, "y": np.array([4, 2, 4, 2, 9]),
    }  # fmt: skip
    return {name: value for name, value in {**found, **changes}.items() if value is not None}


def written(tmp_path: Path, **changes: Any) -> Path:
    np.savez_compressed(tmp_path / "some.npz", **arrays(**changes))
    return tmp_path / "some.npz"


def same(one: Any, other: Any) -> bool:
    return one.to_dict().keys() == other.to_dict().keys() and all((one[k] == other[k]).all() for k in one.to_dict())


CHANGES: dict[str, dict[str, Any]] = {
    "plain": {},
    "both directions": {
        "num_edges": 2 * (np.arange(1, 6) - 1), "edge_attr": np.arange(20) % 3,
        "edges": np.repeat(arrays()["edges"], 2, axis=0) * 1,
    },
    "columns first": {"x": np.asfortranarray(np.arange(30).reshape(15, 2))},
    "floats": {"x": np.linspace(0, 1, 15), "edge_attr": None, "y": np.linspace(0, 1, 5)},
    "tasks": {"y": np.asfortranarray(np.arange(10).reshape(5, 2) % 2)},
    "names of nodes": {"x": None, "node_label": np.arange(15) % 3},
}  # fmt: skip
CHANGES["both directions"]["edges"][1::2] = CHANGES["both directions"]["edges"][1::2, ::-1]


@pytest.mark.parametrize("name", CHANGES)
def test_blocks_are_the_graphs_of_the_file(name: str, tmp_path: Path) -> None:
    path = written(tmp_path, **CHANGES[name])
    expected, stream = from_npz(path).graphs, NpzStream(path)
    assert len(stream) == 5 and all(map(same, stream, expected))
    blocks = list(stream.flat_blocks(repeat(2)))
    assert [len(flat.num_nodes) for flat, _ in blocks] == [2, 2, 1]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"edges": None}, "expected an array 'edges'"),
        ({"y": None, "node_y": np.zeros(15)}, "got labels of nodes"),
        ({"y": np.zeros(3, int)}, "5 graphs, y 3"),
        ({"x": np.zeros((9, 1), int)}, "'x': the graphs have more rows; is the file cut short"),
        ({"edges": arrays()["edges"] + 7}, r"graphs 0 to 1: graph 1 has nodes 0 to 1, but an edge \(7, 8\)"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict, said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=said):
        list(NpzStream(written(tmp_path, **changes)).flat_blocks(repeat(2)))


def test_directions_must_not_change(tmp_path: Path) -> None:
    edges = np.array([[0, 1], [1, 0], [0, 1], [1, 2]])
    path = written(tmp_path, num_nodes=[2, 3], num_edges=[2, 2], edges=edges, x=None, edge_attr=None, y=[0, 1])
    with pytest.raises(ValueError, match="graphs 1 to 1: edges stand once, those before do not"):
        list(NpzStream(path).flat_blocks(repeat(1)))
    assert [len(flat.edges) for flat, _ in NpzStream(path, edges="both").flat_blocks(repeat(1))] == [2, 2]
    with pytest.raises(ValueError, match="67% of the edges stand in both directions"):  # of three: 0-1 both ways, and 1-2
        many = {"num_nodes": [3], "num_edges": [3], "edges": edges[[0, 1, 3]], "x": None, "edge_attr": None, "y": [0]}
        list(NpzStream(written(tmp_path, **many)).flat_blocks(repeat(1)))


def test_no_file_of_arrays(tmp_path: Path) -> None:
    (tmp_path / "some.npz").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"is cut short, or is no \.npz file"):
        NpzStream(tmp_path / "some.npz")
    np.savez(tmp_path / "objects.npz", **arrays(x=np.array([{}] * 15)))
    with pytest.raises(ValueError, match="'x': expected a plain array"):
        list(NpzStream(tmp_path / "objects.npz"))
