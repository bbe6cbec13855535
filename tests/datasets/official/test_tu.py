import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.io import read_tu_data
from torch_geometric.utils import one_hot

from enfa.datasets import from_npz, load

# A triangle with a self-loop and a repeated edge, a single node, an edge, two nodes without an edge.
TOY = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n1, 1\n5, 6\n6, 5\n1, 2\n2, 1\n",
    "graph_indicator": "1\n1\n1\n2\n3\n3\n4\n4\n",
    "graph_labels": "1\n-1\n1\n-1\n",
}
NODE_LABELS = "5, 0\n7, 1\n5, 2\n6, 0\n5, 0\n5, 1\n7, 0\n5, 0\n"
NODE_ATTRIBUTES = "0.5\n1.5\n2.5\n3.5\n4.5\n5.5\n6.5\n7.5\n"


def write(root: Path, **files: str) -> Path:
    folder = root / "TOY" / "raw"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (TOY | files).items():
        (folder / f"TOY_{name}.txt").write_text(text)
    return root


def test_graphs_without_labels_are_all_alike(tmp_path: Path) -> None:
    toy = load("TOY", write(tmp_path))
    assert [g.num_nodes for g in toy.graphs] == [3, 1, 2, 2]
    assert [g.num_edges for g in toy.graphs] == [6, 0, 2, 0]
    assert toy.labels.tolist() == [1, 0, 1, 0]
    assert toy.in_channels == [1] and toy.edge_channels is None
    assert all(not g.x.any() for g in toy.graphs)


def test_label_columns_become_categories(tmp_path: Path) -> None:
    toy = load("TOY", write(tmp_path, node_labels=NODE_LABELS, node_attributes=NODE_ATTRIBUTES))
    assert toy.in_channels == [3, 3]
    assert torch.cat([g.x for g in toy.graphs]).tolist() == [
        [0, 0], [2, 1], [0, 2], [1, 0], [0, 0], [0, 1], [2, 0], [0, 0],
    ]  # fmt: skip


def test_attributes_on_request(tmp_path: Path) -> None:
    root = write(tmp_path, node_labels=NODE_LABELS, node_attributes=NODE_ATTRIBUTES)
    toy = load("TOY", root, use_node_attr=True)
    assert toy.in_channels == 7
    assert toy.graphs[1].x.tolist() == [[3.5, 0, 1, 0, 1, 0, 0]]
    with pytest.raises(ValueError, match="TOY has no node attributes"):
        load("TOY", write(tmp_path / "other"), use_node_attr=True)


def test_edge_labels_become_categories(tmp_path: Path) -> None:
    simple = {"A": "1, 2\n2, 1\n2, 3\n3, 2\n5, 6\n6, 5\n", "edge_labels": "1\n1\n2\n2\n4\n4\n"}
    toy = load("TOY", write(tmp_path, **simple))
    assert toy.edge_channels == [4]
    assert [g.edge_attr.flatten().tolist() for g in toy.graphs] == [[0, 0, 1, 1], [], [3, 3], []]


def test_proteins(laid_out: Callable[[str], Path], data: Path) -> None:
    root = laid_out("PROTEINS")
    proteins = load("PROTEINS", root)
    assert (len(proteins), proteins.num_outputs, proteins.metric) == (1113, 2, "accuracy")
    assert (proteins.in_channels, proteins.edge_channels) == ([3], None)
    assert np.mean([g.num_nodes for g in proteins.graphs]) == pytest.approx(39.06, abs=0.005)
    assert np.mean([g.num_edges / 2 for g in proteins.graphs]) == pytest.approx(72.82, abs=0.005)
    assert np.bincount(proteins.labels).tolist() == [663, 450]

    whole, _, _ = read_tu_data(str(root / "PROTEINS" / "raw"), "PROTEINS")
    assert torch.equal(one_hot(torch.cat([g.x for g in proteins.graphs])[:, 0]), whole.x[:, 1:])
    assert torch.equal(torch.cat([g.edge_index for g in proteins.graphs], dim=1), whole.edge_index)
    assert torch.equal(torch.cat([g.y for g in proteins.graphs]), whole.y)
    with_attributes = load("PROTEINS", root, use_node_attr=True)
    assert with_attributes.in_channels == 4
    assert torch.equal(torch.cat([g.x for g in with_attributes.graphs]), whole.x)

    compact = from_npz(data / "PROTEINS.npz", use_node_attr=True)
    assert np.array_equal(compact.labels, proteins.labels)
    assert all(torch.equal(a.x, b.x) for a, b in zip(compact.graphs, with_attributes.graphs, strict=True))


def test_proteins_folds_are_those_of_esan(laid_out: Callable[[str], Path]) -> None:
    selection = pytest.importorskip("sklearn.model_selection", reason="scikit-learn is not installed")
    proteins = load("PROTEINS", laid_out("PROTEINS"))
    splitter = selection.StratifiedKFold(n_splits=10, shuffle=True, random_state=0)
    expected = list(splitter.split(np.zeros(1113), proteins.labels))
    for fold, (train, test) in enumerate(expected):
        parts = proteins.split(fold, seed=0)
        assert np.array_equal(parts["train"], train) and np.array_equal(parts["test"], test)


def test_refuses_proteins_cut_short(laid_out: Callable[[str], Path], tmp_path: Path) -> None:
    raw = tmp_path / "PROTEINS" / "raw"
    shutil.copytree(laid_out("PROTEINS") / "PROTEINS" / "raw", raw)
    lines = (raw / "PROTEINS_A.txt").read_text().splitlines(keepends=True)
    (raw / "PROTEINS_A.txt").write_text("".join(lines[:-2]))
    with pytest.raises(ValueError, match="43471 nodes and 162088 edges, got 1113, 43471 and 162086"):
        load("PROTEINS", tmp_path)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"A": TOY["A"][:-1]}, "TOY_A.txt does not end with a newline"),
        ({"A": ""}, "TOY_A.txt does not end with a newline"),
        ({"A": "1, 2\n2,\n"}, "the files do not fit together"),
        ({"A": "1, 2\n2, 9\n"}, r"graph 0 has nodes 0 to 2, but an edge \(1, 8\)"),
        ({"A": "1, 2\n9, 2\n", "node_labels": NODE_LABELS}, "the files do not fit together"),
        ({"graph_indicator": TOY["graph_indicator"][:4]}, "cut short"),
        ({"graph_labels": "1\n1\n"}, "4 graphs have 2 labels; is a file cut short"),
        ({"graph_labels": "1, 2\n0, 1\n1, 2\n0, 1\n"}, "TOY has 2 labels for each graph"),
        ({"node_labels": NODE_LABELS[:10]}, "cut short"),
        ({"graph_attributes": "0.5\n0.1\n0.2\n0.3\n"}, "real-valued targets"),
    ],
)
def test_refuses(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load("TOY", write(tmp_path, **files))
