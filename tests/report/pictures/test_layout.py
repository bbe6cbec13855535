import numpy as np

from enfa.report.pictures.layout import hop_distances, layout
from enfa.testing import degenerate_graphs, random_graph


def test_hops() -> None:
    edges = np.array([[0, 1, 3], [1, 2, 3]])  # 0 - 1 - 2, and 3 alone with a loop
    assert hop_distances(4, edges).tolist() == [[0, 1, 2, 4], [1, 0, 1, 4], [2, 1, 0, 4], [4, 4, 4, 0]]


def test_a_path_is_a_line() -> None:
    place = layout(5, np.array([[0, 1, 2, 3], [1, 2, 3, 4]]))
    assert np.allclose(np.linalg.norm(np.diff(place, axis=0), axis=1), 1, atol=0.02)
    assert np.ptp(place[:, 0]) > 3.9 and np.ptp(place[:, 1]) < 0.3


def test_nodes_do_not_meet() -> None:
    for graph in [random_graph(30, seed=2), *degenerate_graphs().values()]:
        place = layout(graph.num_nodes, graph.edge_index.numpy())
        assert place.shape == (graph.num_nodes, 2) and np.isfinite(place).all()
        gap = np.linalg.norm(place[:, None] - place[None], axis=2)[np.triu_indices(len(place), 1)]
        assert gap.min(initial=9) > 0.05


def test_repeats() -> None:
    edges = random_graph(20, seed=4).edge_index.numpy()
    assert np.array_equal(layout(20, edges), layout(20, edges))
