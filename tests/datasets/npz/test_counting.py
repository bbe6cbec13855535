from pathlib import Path

import numpy as np
import pytest

from enfa.datasets import load
from enfa.datasets.benchmark import Benchmark


@pytest.fixture(scope="module")
def nodes(data: Path) -> Benchmark:
    return load("counting", data)


def test_counts_of_nodes(nodes: Benchmark) -> None:
    assert (nodes.task, nodes.metric, nodes.level, nodes.in_channels) == ("regression", "mae", "node", [1])
    assert nodes.targets == ("cycle3", "cycle4", "cycle5", "cycle6", "tailed-triangle", "chordal-cycle", "clique4")
    assert [len(nodes.split()[part]) for part in ("train", "valid", "test")] == [1_500, 1_000, 2_500]
    known = np.concatenate([nodes.graphs[g].y.numpy() for part in ("train", "valid") for g in nodes.split()[part]])
    assert known.mean(0) == pytest.approx(np.zeros(7), abs=1e-5) and known.std(0) == pytest.approx(np.ones(7), rel=1e-4)


def test_counts_are_those_of_paths_walked(nodes: Benchmark) -> None:
    """Of the first graphs, cycles through every node, by walking."""
    assert nodes.mean is not None and nodes.std is not None
    for graph in nodes.graphs[1:4]:
        next_to: dict[int, list[int]] = {v: [] for v in range(graph.num_nodes)}
        for a, b in graph.edge_index.T.tolist():
            next_to[a].append(b)

        def closed(path: list[int], length: int, next_to: dict[int, list[int]] = next_to) -> int:
            if len(path) == length:
                return path[0] in next_to[path[-1]]
            return sum(closed([*path, w], length) for w in next_to[path[-1]] if w not in path)

        counts = [[closed([v], length) // 2 for length in (3, 4, 5, 6)] for v in range(graph.num_nodes)]
        found = graph.y.numpy().astype(float) * nodes.std + nodes.mean
        assert found[:, :4] == pytest.approx(np.array(counts), abs=1e-3)


def test_counts_of_graphs_are_sums_over_nodes(nodes: Benchmark, data: Path) -> None:
    graphs = load("counting-graphs", data)
    assert graphs.level == "graph" and graphs.targets == (*nodes.targets, "star3") and graphs.mean == (0.0,) * 8
    assert graphs.labels.std(0, ddof=1) == pytest.approx(np.ones(8), rel=1e-5)
    assert graphs.std is not None and nodes.std is not None
    each = nodes.graphs[7].y.numpy().astype(float) * nodes.std + nodes.mean
    found = graphs.graphs[7].y.numpy()[0].astype(float) * graphs.std
    assert found[:7] == pytest.approx(each.sum(0) / [3, 4, 5, 6, 1, 2, 4], abs=1e-3)
    a = np.zeros((nodes.graphs[7].num_nodes,) * 2)
    a[tuple(nodes.graphs[7].edge_index.numpy())] = 1
    degree, triangles = a.sum(1), np.diag(a @ a @ a) / 2
    assert found[[0, 4]] == pytest.approx([triangles.sum() / 3, (triangles * (degree - 2)).sum()], abs=1e-3)
    assert found[7] == pytest.approx((degree * (degree - 1) * (degree - 2) / 6).sum(), abs=1e-3)


def test_one_target(nodes: Benchmark) -> None:
    one = nodes.only("cycle5")
    assert (one.num_outputs, one.targets, one.std) == (1, ("cycle5",), nodes.std[2:3])
    assert np.array_equal(one.labels[:, 0], nodes.labels[:, 2]) and nodes.graphs[0].y.shape[1] == 7
    with pytest.raises(ValueError, match=r"expected one of the targets cycle3, .*, got 'cycle7'"):
        nodes.only("cycle7")
