from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.utils import is_undirected

from enfa.datasets import from_npz, load

# A lone clause of class 0, and a path 0-1-2 of class 1.
SMALL = "2\n1 0\n1 0\n3 1\n0 1 1\n1 2 0 2\n0 1 1\n"


def write(root: Path, text: str) -> Path:
    (root / "EXP" / "raw").mkdir(parents=True, exist_ok=True)
    (root / "EXP" / "raw" / "GRAPHSAT.txt").write_text(text)
    return root


def test_format(tmp_path: Path) -> None:
    lone, path = load("EXP", write(tmp_path, SMALL)).graphs
    assert path.x.tolist() == [[0], [1], [0]]
    assert path.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert (path.y.tolist(), lone.y.tolist()) == ([1], [0])
    assert (lone.num_nodes, lone.num_edges) == (1, 0)


@pytest.mark.parametrize("name, nodes, edges", [("EXP", 44.45, 55.11), ("CEXP", 55.78, 69.78)])
def test_real_counts(laid_out: Callable[[str], Path], data: Path, name: str, nodes: float, edges: float) -> None:
    benchmark = load(name, laid_out(name))
    assert (len(benchmark), benchmark.num_outputs, benchmark.metric) == (1200, 2, "accuracy")
    assert benchmark.in_channels == [2] and benchmark.edge_channels is None
    assert np.bincount(benchmark.labels).tolist() == [600, 600]
    assert np.mean([g.num_nodes for g in benchmark.graphs]) == pytest.approx(nodes, abs=0.005)
    assert np.mean([g.num_edges / 2 for g in benchmark.graphs]) == pytest.approx(edges, abs=0.005)
    assert all(is_undirected(g.edge_index) for g in benchmark.graphs[::50])
    for graph, other in zip(benchmark.graphs, from_npz(data / f"{name}.npz").graphs):
        assert torch.equal(graph.x, other.x) and torch.equal(graph.y, other.y)
        order = torch.argsort(other.edge_index[0] * graph.num_nodes + other.edge_index[1])
        assert torch.equal(graph.edge_index, other.edge_index[:, order])


@pytest.mark.parametrize("kept", range(len(SMALL.split())))
def test_refuses_a_file_cut_anywhere(tmp_path: Path, kept: int) -> None:
    with pytest.raises(ValueError, match=r"GRAPHSAT.txt ends in the middle of a graph"):
        load("EXP", write(tmp_path, " ".join(SMALL.split()[:kept])))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SMALL + "1 0\n", "goes on after its last graph"),
        (SMALL.replace("3 1", "3 x"), "expected whole numbers only"),
        (SMALL.replace("3 1", "3 2"), "EXP: expected graph 1 to have a class from 0 to 1 as label, got 2"),
        (SMALL.replace("0 1 1", "0 1 3"), r"graph 1 has nodes 0 to 2, but an edge \(0, 3\)"),
        (SMALL.replace("0 1 1", "2 1 1"), "column 0 of x has 2 categories, got number 2"),
    ],
)
def test_refuses(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load("EXP", write(tmp_path, text))
