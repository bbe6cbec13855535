from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from enfa.datasets import from_graphs, from_npz, to_npz
from enfa.datasets.own import graphs_from_npz
from enfa.testing import random_graphs


def graphs(y: torch.Tensor | None = None) -> list[Data]:
    found = [Data(x=g.x.long() + 300, edge_index=g.edge_index) for g in random_graphs(12, nodes=5, channels=2)]
    for graph, label in zip(found, [] if y is None else y.split(1)):
        graph.y = label
    return found


def same(a: list[Data], b: list[Data], *names: str) -> bool:
    return all(torch.equal(one[name], other[name]) for one, other in zip(a, b, strict=True) for name in names)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    made = graphs(torch.arange(12) % 3)
    splits = {"train": np.arange(8), "valid": np.array([8, 9]), "test": np.array([10, 11])}
    to_npz(made, tmp_path / "a.npz", splits=splits, in_channels=[400, 500], targets=["kind"], classes=["x", "y", "z"])
    data = from_npz(tmp_path / "a.npz")
    assert same(made, data.graphs, "x", "edge_index", "y")
    assert (data.in_channels, data.targets, data.classes) == ([400, 500], ("kind",), ("x", "y", "z"))
    assert all(np.array_equal(data.split()[part], rows) for part, rows in splits.items())


def test_directed_edges_stay_as_they_are(tmp_path: Path) -> None:
    one_way = [Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3, y=torch.tensor([k])) for k in range(2)]
    for edges, count in (("both", 2), ("once", 4), ("auto", 4)):
        to_npz(one_way, tmp_path / "a.npz", edges=edges, force=True)  # type: ignore[arg-type]
        assert from_npz(tmp_path / "a.npz").graphs[0].num_edges == count
        assert from_npz(tmp_path / "a.npz", edges="both").graphs[0].num_edges == 2


def test_numbers_features_and_labels_of_nodes(tmp_path: Path) -> None:
    made = graphs(torch.linspace(-1, 1, 12)[:, None])
    for graph in made:
        graph.x, graph.edge_attr = graph.x.float() / 7, torch.rand(graph.num_edges, 2)
    to_npz(made, tmp_path / "a.npz", metric="mse")
    data = from_npz(tmp_path / "a.npz")
    assert same(made, data.graphs, "x", "edge_attr", "y") and (data.task, data.metric) == ("regression", "mse")
    for graph in made:
        graph.y = torch.rand(graph.num_nodes, 1)
    to_npz(made, tmp_path / "b.npz", level="node")
    assert same(made, from_npz(tmp_path / "b.npz").graphs, "y") and from_npz(tmp_path / "b.npz").level == "node"


def test_graphs_without_labels_are_for_prediction(tmp_path: Path) -> None:
    to_npz(graphs(), tmp_path / "a.npz")
    assert same(graphs(), graphs_from_npz(tmp_path / "a.npz"), "x", "edge_index")


def test_features_that_numpy_cannot_have(tmp_path: Path) -> None:
    made = graphs(torch.arange(12))
    for graph in made:
        graph.x = torch.full((graph.num_nodes, 1), 1.5, dtype=torch.bfloat16)
    to_npz(made, tmp_path / "a.npz")
    assert from_npz(tmp_path / "a.npz").graphs[0].x.tolist() == [[1.5]] * made[0].num_nodes
    for graph in made:
        graph.x = graph.x.float().to_sparse()
    with pytest.raises(
        ValueError, match=r"^to_npz: expected the graphs' x to be numbers, one by one, got a tensor of .*sparse"
    ):
        to_npz(made, tmp_path / "b.npz")


def test_refuses(tmp_path: Path) -> None:
    to_npz(graphs(), tmp_path / "a.npz")
    before = (tmp_path / "a.npz").read_bytes()
    with pytest.raises(ValueError, match=r"a\.npz exists: --force"):
        to_npz(graphs()[:2], tmp_path / "a.npz")
    with pytest.raises(ValueError, match=r"ending in \.npz"):
        to_npz(graphs(), tmp_path / "a.csv")
    with pytest.raises(ValueError, match="at least one graph"):
        to_npz([], tmp_path / "b.npz")
    mixed = graphs(torch.arange(12))
    del mixed[3].y
    with pytest.raises(ValueError, match="graph 3 has no y"):
        to_npz(mixed, tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == before and [path.name for path in tmp_path.iterdir()] == ["a.npz"]


@pytest.mark.parametrize(
    ("y", "told", "why"),
    [
        (torch.arange(12.0), {}, "say metric='mae'"),
        (torch.arange(12), {"classes": ["a", "b"]}, "expected graph 2 to have a class from 0 to 1"),
        (torch.arange(12), {"targets": ["a", "b"]}, "expected targets to have 1 entries, got 2"),
        (torch.arange(12), {"metric": "ap"}, "the metric of a multiclass task is accuracy"),
        (torch.arange(12), {"splits": {"train": [0, 1], "valid": [2]}}, "expected the splits"),
        (torch.arange(12), {"splits": {"train": [0], "valid": [2], "test": [12]}}, "positions from 0 to 11, got 12 to 12"),
        (torch.arange(12)[:, None] / 4, {}, "have 0, 1 or NaN.*; for numbers to predict, give metric='mae'"),
        (torch.arange(12), {"in_channels": [300, 400]}, "column 0 of x has 300 categories, got number"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(tmp_path: Path, y: torch.Tensor, told: dict, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        to_npz(graphs(y), tmp_path / "a.npz", **told)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"node_labels": 0}, "expected an array 'node_label', got 'node_labels'"),
        ({"X": 0}, "expected an array 'x', got 'X'"),
        ({"edge_attrs": 0}, "expected an array 'edge_attr', got 'edge_attrs'"),
        ({"edge_weight": 0}, "expected no array 'edge_weight'"),
        ({"node_label": 0}, "expected an array 'x' or 'node_label', got both"),
    ],
)
def test_arrays_that_nothing_would_read_are_refused(tmp_path: Path, more: dict, why: str) -> None:
    to_npz(graphs(torch.arange(12) % 2), tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as file:
        arrays = dict(file)
    others = ("other", "categories", "edge_label", "num_nodes_max", "class", "X")
    np.savez(tmp_path / "b.npz", **arrays, split_train_0=0)
    assert len(graphs_from_npz(tmp_path / "b.npz")) == 12
    with pytest.raises(ValueError, match="expected the splits"):
        from_npz(tmp_path / "b.npz")
    np.savez(tmp_path / "b.npz", **arrays, **dict.fromkeys(others, np.ones(1)))
    assert len(from_npz(tmp_path / "b.npz")) == len(graphs_from_npz(tmp_path / "b.npz")) == 12
    new = {key: np.full(len(arrays["x"]), value) for key, value in more.items()}
    np.savez(tmp_path / "b.npz", **{k: v for k, v in arrays.items() if k != "x" or "X" not in more}, **new)
    for read in (from_npz, graphs_from_npz):
        with pytest.raises(ValueError, match=why):
            read(tmp_path / "b.npz")


def test_positions_of_a_split_are_integers(tmp_path: Path) -> None:
    for wrong in (np.array([0.5, 1.5]), np.array([True] * 12)):
        with pytest.raises(ValueError, match="positions of graphs, integers, got"):
            to_npz(graphs(torch.arange(12)), tmp_path / "a.npz", splits={"train": wrong, "valid": [2], "test": [3]})


def test_a_file_without_features_will_do_only_where_nodes_are_alike(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", num_nodes=[2], num_edges=[1], edges=[[0, 1]])
    assert len(graphs_from_npz(tmp_path / "a.npz")) == 1
    with pytest.raises(ValueError, match="expected features of nodes"):
        graphs_from_npz(tmp_path / "a.npz", needs=["features"])


@pytest.mark.parametrize("key", ["edge_weight", "x_cat"])
def test_inputs_of_models_are_not_left_behind(tmp_path: Path, key: str) -> None:
    given = graphs(torch.arange(12))
    given[3][key] = torch.zeros(given[3].num_edges if key == "edge_weight" else given[3].num_nodes)
    for read in (from_graphs, lambda given: to_npz(given, tmp_path / "a.npz")):
        with pytest.raises(ValueError, match=f"expected graphs without {key}, .* got graph 3"):
            read(given)
