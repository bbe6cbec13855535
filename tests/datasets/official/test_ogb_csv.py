import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from enfa.datasets import ATOM_CHANNELS, BOND_CHANNELS, Benchmark, from_npz, load

# Two molecules: three atoms in a row, and an atom alone; two tasks, of which two entries were not measured.
RAW = {
    "edge": "0,1\n1,2\n",
    "node-feat": "5,0,1,5,3,0,2,0,0\n" * 4,
    "edge-feat": "0,0,0\n1,0,1\n",
    "num-node-list": "3\n1\n",
    "num-edge-list": "2\n0\n",
}


def write(root: Path, folder: str = "ogbg_molclintox", **files: str) -> Path:
    tables = {f"raw/{name}": text for name, text in RAW.items()} | {"raw/graph-label": "1,\n,0\n"}
    tables |= {"split/scaffold/train": "0\n", "split/scaffold/valid": "1\n", "split/scaffold/test": "1\n"}
    for name, text in (tables | {name.replace("__", "/"): text for name, text in files.items()}).items():
        path = root / folder / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()))
    return root


@pytest.mark.parametrize("folder", ["ogbg_molclintox", "ogbg_molclintox_pyg"])
def test_format(tmp_path: Path, folder: str) -> None:
    toy = load("ogbg-molclintox", write(tmp_path, folder))
    row, alone = toy.graphs
    assert row.edge_index.t().tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert row.edge_attr.tolist() == [[0, 0, 0], [0, 0, 0], [1, 0, 1], [1, 0, 1]]
    assert (alone.num_nodes, alone.num_edges, alone.edge_attr.shape) == (1, 0, (0, 3))
    assert np.array_equal(toy.labels, [[1, np.nan], [np.nan, 0]], equal_nan=True)
    assert (toy.in_channels, toy.edge_channels) == (ATOM_CHANNELS, BOND_CHANNELS)


@pytest.fixture(scope="module")
def moltox21(laid_out: Callable[[str], Path]) -> Benchmark:
    return load("ogbg-moltox21", laid_out("ogbg-moltox21"))


def means(benchmark: Benchmark) -> tuple[float, float]:
    sizes = [(g.num_nodes, g.num_edges / 2) for g in benchmark.graphs]
    nodes, edges = np.mean(sizes, axis=0)
    return nodes, edges


def test_moltox21(moltox21: Benchmark) -> None:
    assert (len(moltox21), moltox21.task, moltox21.num_outputs, moltox21.metric) == (
        7831,
        "binary",
        12,
        "rocauc",
    )
    assert means(moltox21) == pytest.approx((18.57, 19.29), abs=0.005)
    assert {part: len(index) for part, index in moltox21.split().items()} == {
        "train": 6264,
        "valid": 783,
        "test": 784,
    }
    measured = ~np.isnan(moltox21.labels)
    assert 0.8 < measured.mean() < 0.9
    assert set(moltox21.labels[measured]) == {0, 1}


def test_moltox21_is_what_ogbs_reader_gives(moltox21: Benchmark, laid_out: Callable[[str], Path], ogb: None) -> None:
    reader = pytest.importorskip("ogb.io.read_graph_pyg")
    expected = reader.read_graph_pyg(str(laid_out("ogbg-moltox21") / "ogbg_moltox21" / "raw"), add_inverse_edge=True)
    for graph, other in zip(moltox21.graphs, expected, strict=True):
        assert torch.equal(graph.x, other.x)
        assert torch.equal(graph.edge_index, other.edge_index)
        assert torch.equal(graph.edge_attr, other.edge_attr)


@pytest.mark.long
def test_molhiv(laid_out: Callable[[str], Path], data: Path) -> None:
    molhiv = load("ogbg-molhiv", laid_out("ogbg-molhiv"))
    assert (len(molhiv), molhiv.task, molhiv.num_outputs, molhiv.metric) == (41127, "binary", 1, "rocauc")
    assert means(molhiv) == pytest.approx((25.51, 27.47), abs=0.005)
    sizes = {part: (len(i), molhiv.labels[i].sum()) for part, i in molhiv.split().items()}
    assert sizes == {"train": (32901, 1232), "valid": (4113, 81), "test": (4113, 130)}

    compact = from_npz(data / "ogbg_molhiv.npz")
    for key in ("x", "edge_attr", "y"):
        assert torch.equal(torch.cat([g[key] for g in molhiv.graphs]), torch.cat([g[key] for g in compact.graphs]))
    assert all(torch.equal(a.edge_index, b.edge_index) for a, b in zip(molhiv.graphs, compact.graphs, strict=True))
    assert all(np.array_equal(molhiv.split()[part], compact.split()[part]) for part in sizes)


def test_refuses_a_file_cut_in_the_middle(laid_out: Callable[[str], Path], tmp_path: Path) -> None:
    shutil.copytree(laid_out("ogbg-moltox21") / "ogbg_moltox21", tmp_path / "ogbg_moltox21")
    for name in ("raw/node-feat", "raw/graph-label"):
        path = tmp_path / "ogbg_moltox21" / f"{name}.csv.gz"
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(ValueError, match=rf"{path.name} is cut short or damaged"):
            load("ogbg-moltox21", tmp_path)
        path.write_bytes(whole)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"raw__edge": "0,1\n"}, "the graphs have 2 edges, but edges has 1 rows"),
        ({"raw__edge": "0,1\n1\n"}, r"edge.csv.gz is cut short or damaged"),
        ({"raw__edge": "0,1\n1,3\n"}, r"graph 0 has nodes 0 to 2, but an edge \(1, 3\)"),
        ({"raw__num-node-list": "3\n"}, "num_nodes counts 1 graphs, num_edges 2"),
        ({"raw__node-feat": "119,0,0,0,0,0,0,0,0\n" * 4}, "column 0 of x has 119 categories, got number 119"),
        ({"raw__graph-label": "1,0\n"}, "2 graphs have 1 labels"),
        ({"raw__graph-label": "1\n0\n"}, "y to have 2 columns, got 1"),
        ({"raw__graph-label": "1,0\n2,0\n"}, "graph 1 to have 0, 1 or NaN"),
        ({"split__scaffold__test": "7\n"}, "'test' to hold positions from 0 to 1, got 7 to 7"),
    ],
)
def test_refuses(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load("ogbg-molclintox", write(tmp_path, **files))
