from pathlib import Path

import numpy as np
import pytest
import torch

from enfa.datasets import from_graphs, load, to_npz
from enfa.datasets.known import compact_file
from enfa.datasets.npz import zinc
from enfa.datasets.official.compact import from_compact


def test_the_subset_has_its_official_split_and_metric(data: Path) -> None:
    found = load("ZINC", data)
    assert (found.metric, found.task, found.num_outputs, found.level) == ("mae", "regression", 1, "graph")
    assert (found.in_channels, found.edge_channels, found.num_folds) == ([28], [4], 1)
    assert [len(found.split()[part]) for part in ("train", "valid", "test")] == [10_000, 1_000, 1_000]
    assert len(found) == 12_000 and found.labels.shape == (12_000, 1)
    with np.load(data / "ZINC.npz") as file:  # graph 11,000 is the first to be tested
        g = file["split_test"][0]
        at, edges = file["num_nodes"][:g].sum(), file["num_edges"][:g].sum()
        first, count = found.graphs[11_000], file["num_edges"][g]
        assert first.x[:, 0].tolist() == file["x"][at : at + file["num_nodes"][g], 0].tolist()
        assert first.edge_index[:, ::2].T.tolist() == file["edges"][edges : edges + count].tolist()
        assert torch.equal(first.edge_index[:, 1::2], first.edge_index[:, ::2].flip(0))
        assert first.edge_attr[::2, 0].tolist() == file["edge_attr"][edges : edges + count, 0].tolist()
        assert float(first.y) == file["y"][g, 0]


def test_all_of_it_is_in_the_same_file(data: Path) -> None:
    assert compact_file("ZINC-full", data) == compact_file("ZINC", data)
    assert zinc.SIZES["ZINC-full"] == ("full_", (220_011, 24_445, 5_000))


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Six graphs, of which the subset has three."""
    monkeypatch.setattr(zinc, "SIZES", {"ZINC": ("split_", (1, 1, 1)), "ZINC-full": ("full_", (4, 1, 1))})
    np.savez(
        tmp_path / "ZINC.npz", num_nodes=np.full(6, 2), num_edges=np.ones(6, int), edges=np.tile([0, 1], (6, 1)),
        x=np.arange(12)[:, None], edge_attr=np.ones((6, 1), int), y=np.arange(6.0)[:, None], full_train=np.arange(4),
        full_val=[4], full_test=[5], split_train=[3], split_val=[4], split_test=[5],
    )  # fmt: skip
    return tmp_path


def test_both_sizes(small: Path) -> None:
    whole, subset = from_compact("ZINC-full", small), from_compact("ZINC", small)
    assert whole.labels[:, 0].tolist() == [0, 1, 2, 3, 4, 5] and subset.labels[:, 0].tolist() == [3, 4, 5]
    assert subset.graphs[0].x[:, 0].tolist() == [6, 7]
    with pytest.raises(ValueError, match="ZINC has no node attributes"):
        from_compact("ZINC", small, use_node_attr=True)


def test_a_file_of_to_npz(small: Path) -> None:
    """As torch_geometric.datasets.ZINC has its graphs: every edge in both directions, no second axis."""
    known = load("ZINC", small)
    graphs = [g.clone() for g in known.graphs]
    for graph in graphs:
        graph.y, graph.edge_attr = graph.y[0], graph.edge_attr[:, 0]
    options = {"metric": "mae", "in_channels": [28], "edge_channels": [4], "splits": known.splits}
    to_npz(graphs, small / "ZINC.npz", force=True, **options)  # type: ignore[arg-type]
    found = load("ZINC", small)
    assert repr(found) == repr(known) and np.array_equal(found.labels, known.labels)
    for one, other in zip(found.graphs, known.graphs, strict=True):
        assert torch.equal(one.edge_index, other.edge_index) and torch.equal(one.edge_attr, other.edge_attr)


def test_a_file_that_lacks_graphs_is_refused(small: Path) -> None:
    with np.load(small / "ZINC.npz") as file:
        np.savez(small / "ZINC.npz", **{**file, "split_test": np.array([5, 4])})
    with pytest.raises(ValueError, match=r"ZINC has \(1, 1, 1\) graphs in train, valid and test, got \(1, 1, 2\)"):
        load("ZINC", small)


def test_pickles_are_not_read(tmp_path: Path) -> None:
    raw = tmp_path / "ZINC" / "raw"
    raw.mkdir(parents=True)
    for part in ("train", "val", "test"):
        (raw / f"{part}.pickle").write_bytes(b"cos\nabort\n(tR.")  # would end the process
    with pytest.raises(FileNotFoundError, match=r"ZINC.npz: not there. Its official files are pickles, which .* never read"):
        load("ZINC", tmp_path)


def test_graphs_loaded_elsewhere_can_be_given(small: Path) -> None:
    """As torch_geometric.datasets.ZINC has them: edge attributes and targets without a second axis."""
    known = load("ZINC-full", small)
    graphs = [g.clone() for g in known.graphs]
    for graph in graphs:
        graph.y, graph.edge_attr = graph.y[0], graph.edge_attr[:, 0]
    found = from_graphs(graphs, name="ZINC-full", metric="mae", in_channels=[28], edge_channels=[4], splits=known.splits)
    assert repr(found) == repr(known) and np.array_equal(found.labels, known.labels)
