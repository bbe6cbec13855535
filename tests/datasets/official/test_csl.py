import numpy as np
import torch
from torch_geometric.utils import contains_self_loops, is_undirected, to_dense_adj

from enfa.datasets import load


def test_counts() -> None:
    csl = load("CSL")
    assert (len(csl), csl.num_outputs, csl.metric, csl.num_folds) == (150, 10, "accuracy", 5)
    assert np.bincount(csl.labels).tolist() == [15] * 10
    assert [len(csl.split(fold)["test"]) for fold in range(5)] == [30] * 5
    for graph in csl.graphs:
        assert (graph.num_nodes, graph.num_edges) == (41, 164)
        assert torch.bincount(graph.edge_index[0]).tolist() == [4] * 41
        assert is_undirected(graph.edge_index) and not contains_self_loops(graph.edge_index)
        assert graph.x.unique().tolist() == [0]


def test_classes_differ_and_copies_are_isomorphic() -> None:
    # The spectrum does not change with the order of the nodes, and tells these ten graphs apart.
    csl = load("CSL")
    spectra = torch.stack([torch.linalg.eigvalsh(to_dense_adj(g.edge_index)[0].double()) for g in csl.graphs])
    distance = torch.cdist(spectra, spectra)
    same = torch.tensor(csl.labels)[:, None] == torch.tensor(csl.labels)
    assert distance[same].max() < 1e-6
    assert distance[~same].min() > 1e-2
    assert len({tuple(g.edge_index.flatten().tolist()) for g in csl.graphs}) == 150, "the copies are shuffled"


def test_repeats() -> None:
    first, second = load("CSL"), load("CSL")
    assert all(torch.equal(a.edge_index, b.edge_index) for a, b in zip(first.graphs, second.graphs, strict=True))
