from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from enfa.datasets import Benchmark, from_graphs, from_npz

# A path 0-1-2, a single node, an edge.
ARRAYS: dict[str, Any] = {
    "num_nodes": np.array([3, 1, 2], dtype=np.int16),
    "num_edges": np.array([2, 0, 1], dtype=np.uint8),
    "edges": np.array([[0, 1], [1, 2], [0, 1]], dtype=np.uint8),
    "y": np.array([2, 1, 2], dtype=np.int8),
}


def write(path: Path, **changes: Any) -> Path:
    arrays = {key: value for key, value in (ARRAYS | changes).items() if value is not None}
    np.savez_compressed(path / "toy.npz", **arrays)
    return path / "toy.npz"


def test_edges_that_stand_once_get_their_reverse(tmp_path: Path) -> None:
    toy = from_npz(write(tmp_path, edge_attr=np.array([7, 8, 9], dtype=np.uint8)))
    assert toy.graphs[0].edge_index.t().tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert toy.graphs[0].edge_attr.flatten().tolist() == [7, 7, 8, 8]
    assert (toy.name, toy.in_channels, toy.edge_channels) == ("toy", [1], [10])
    assert toy.labels.tolist() == [1, 0, 1]


def test_edges_that_stand_in_both_directions_stay(tmp_path: Path) -> None:
    both = {"num_edges": np.array([2, 0, 2]), "edges": np.array([[0, 1], [1, 0], [0, 1], [1, 0]])}
    assert [g.num_edges for g in from_npz(write(tmp_path, **both)).graphs] == [2, 0, 2]


def test_a_mixture_of_both_needs_a_word(tmp_path: Path) -> None:
    mixed = write(tmp_path, num_edges=np.array([3, 0, 0]), edges=np.array([[0, 1], [1, 0], [1, 2]]))
    with pytest.raises(ValueError, match="67% of the edges stand in both directions"):
        from_npz(mixed)
    assert from_npz(mixed, edges="both").graphs[0].num_edges == 3
    assert from_npz(mixed, edges="once").graphs[0].num_edges == 6


def test_features(tmp_path: Path) -> None:
    labels = {"node_label": np.array([0, 1, 2, 0, 1, 2], dtype=np.int8)}
    assert from_npz(write(tmp_path, **labels)).in_channels == [3]
    with_attr = write(tmp_path, **labels, node_attr=np.arange(6.0))
    assert from_npz(with_attr).in_channels == [3]
    assert from_npz(with_attr, use_node_attr=True).graphs[1].x.tolist() == [[3, 1, 0, 0]]
    floats = from_npz(write(tmp_path, x=np.ones((6, 4))))
    assert floats.in_channels == 4 and floats.graphs[0].x.dtype == torch.float32


def test_splits_by_either_name(tmp_path: Path) -> None:
    for valid in ("valid", "val"):
        parts = {"split_train": np.array([0]), f"split_{valid}": np.array([1]), "split_test": np.array([2])}
        assert from_npz(write(tmp_path, **parts)).split()["valid"].tolist() == [1]


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"y": None}, {}, "expected an array 'y', or instead of it 'node_y', got"),
        ({}, {"edges": "twice"}, "'auto', 'once' or 'both', got 'twice'"),
        ({}, {"use_node_attr": True}, "need an array 'node_attr' and no array 'x'"),
        (
            {"node_attr": np.zeros(6), "node_label": np.zeros(5, dtype=int)},
            {"use_node_attr": True},
            "has 6 rows",
        ),
        (
            {"y": np.array([0, 1, 5])},
            {"num_outputs": 2},
            "graph 2 to have a class from 0 to 1 as label, got 5",
        ),
        ({"split_train": np.array([0])}, {}, "expected the splits"),
        ({"y": np.array([None, 1, 2], dtype=object)}, {}, "no .npz file of plain arrays"),
        ({"x": np.zeros((5, 2))}, {}, "the graphs have 6 nodes, but x has 5 rows; is a file cut short"),
    ],
)
def test_npz_refuses(tmp_path: Path, changes: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_npz(write(tmp_path, **changes), **options)


def test_refuses_what_is_no_npz(tmp_path: Path) -> None:
    path = write(tmp_path)
    whole = path.read_bytes()
    for content in (b"", b"hello", whole[: len(whole) // 2], whole[:-9]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"toy.npz is cut short, or is no .npz file"):
            from_npz(path)
    np.save(tmp_path / "toy.npy", np.zeros(3))
    with pytest.raises(ValueError, match=r"no .npz file"):
        from_npz(tmp_path / "toy.npy")
    with pytest.raises(FileNotFoundError, match=r"none.npz"):
        from_npz(tmp_path / "none.npz")


TABLE = {  # file: graphs, mean nodes, mean undirected edges, outputs, split
    "PROTEINS": (1113, 39.06, 72.82, 2, None),
    "EXP": (1200, 44.45, 55.11, 2, None),
    "CEXP": (1200, 55.78, 69.78, 2, None),
    "ogbg_moltox21": (7831, 18.57, 19.29, 12, (6264, 783, 784)),
    "peptides_func": (15535, 150.94, 153.65, 10, (10873, 2331, 2331)),
}  # molhiv: see test_ogb_csv.py


@pytest.mark.parametrize("name", TABLE)
def test_real_files(data: Path, name: str) -> None:
    count, nodes, edges, outputs, parts = TABLE[name]
    benchmark = from_npz(data / f"{name}.npz", metric="ap" if name == "peptides_func" else None)
    assert (len(benchmark), benchmark.num_outputs) == (count, outputs)
    assert np.mean([g.num_nodes for g in benchmark.graphs]) == pytest.approx(nodes, abs=0.005)
    assert np.mean([g.num_edges / 2 for g in benchmark.graphs]) == pytest.approx(edges, abs=0.005)
    assert benchmark.task == ("multiclass" if parts is None else "binary")
    if parts is None:
        assert [len(benchmark.split(fold)["test"]) for fold in (0, 9)] == [-(-count // 10), count // 10]
    else:
        assert tuple(map(len, benchmark.split().values())) == parts


def graph(y: Any = 0, **changes: Any) -> Data:
    return Data(**({"x": torch.zeros(2, 1), "edge_index": torch.tensor([[0, 1], [1, 0]]), "y": y} | changes))


def test_own_graphs() -> None:
    toy = from_graphs([graph(3), graph(torch.tensor(5)), graph(torch.tensor([3]), pos=1)], name="mine")
    assert isinstance(toy, Benchmark)
    assert (toy.name, toy.labels.tolist(), toy.in_channels) == ("mine", [0, 1, 0], 1)
    assert "pos" not in toy.graphs[2]
    bare = from_graphs([graph(0, x=None, num_nodes=2), graph(1, x=None, num_nodes=3)])
    assert (bare.in_channels, bare.graphs[1].x.tolist()) == ([1], [[0], [0], [0]])
    tasks = from_graphs([graph(torch.tensor([[1.0, float("nan")]]))], metric="ap")
    assert (tasks.task, tasks.metric, tasks.num_outputs) == ("binary", "ap", 2)


def test_labels_in_one_dimension_are_rows_as_for_compile() -> None:
    one, other = torch.tensor([0.5, float("nan"), 2.0]), torch.tensor([1.5, 0.0, 3.0])
    toy = from_graphs([graph(one), graph(other)], metric="mae")
    np.testing.assert_array_equal(toy.labels, torch.stack([one, other]))
    assert from_graphs([graph([1, 0]), graph([0, 1])]).labels.tolist() == [[1, 0], [0, 1]]


def test_own_graphs_are_copied() -> None:
    mine = graph()
    from_graphs([mine]).graphs[0].x[0, 0] = 9
    assert mine.x[0, 0] == 0


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        ([], "at least one graph, got none"),
        ([graph(), graph(None)], "graph 1 has no y"),
        ([graph(), graph(x=None, num_nodes=2)], "graph 1 has no x"),
        ([graph(edge_attr=torch.zeros(2, 1)), graph()], "graph 1 has no edge_attr"),
        ([graph(), graph(edge_index=None)], "graph 1 has no edge_index"),
        ([graph(), graph(x=torch.zeros(2, 3))], "the graphs' x do not fit together"),
        (
            [graph(edge_index=torch.tensor([[0, 2], [1, 0]]))],
            r"graph 0 has nodes 0 to 1, but an edge \(2, 0\)",
        ),
        ([graph(edge_attr=torch.zeros(3, 1))], "but edge_attr has 3 rows"),
        ([graph("cat")], "^graphs: expected graph 0 to have a number or numbers as y, got 'cat'"),
        ([graph([0.5, 0.0])], "have 0, 1 or NaN .*; for numbers to predict, give metric='mae', 'mse' or 'r2'$"),
    ],
)
def test_own_graphs_refuses(graphs: list[Data], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_graphs(graphs)
