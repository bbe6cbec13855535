from itertools import combinations, permutations

import numpy as np
import pytest

from enfa.datasets.flat import FlatGraphs
from enfa.datasets.npz import substructures
from enfa.datasets.npz.substructures import PATTERNS, count_patterns, stars

# Edges of each pattern; the node in the place that counts is 0.
EDGES = {
    "tailed-triangle": [(0, 1), (1, 2), (1, 3), (2, 3)],
    "chordal-cycle": [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)],
    "clique4": list(combinations(range(4), 2)),
}


def by_hand(n: int, edges: set[tuple[int, int]], pattern: str) -> list[int]:
    """Every way to put the pattern's nodes on the graph's, each set of edges once for each node in place 0."""
    found: list[set[frozenset[frozenset[int]]]] = [set() for _ in range(n)]
    for placed in permutations(range(n), 4):
        there = [(placed[a], placed[b]) for a, b in EDGES[pattern]]
        if all(edge in edges for edge in there):
            found[placed[0]].add(frozenset(frozenset(edge) for edge in there))
    return [len(each) for each in found]


def random_flat(seed: int, count: int = 12) -> FlatGraphs:
    """With graphs of no node, of one, and without edges."""
    rng = np.random.default_rng(seed)
    sizes = np.array([0, 1, 5, *rng.integers(2, 8, count)])
    dense = [np.triu(rng.random((n, n)) < (0.0 if i == 2 else rng.random()), 1) for i, n in enumerate(sizes)]
    edges = [np.argwhere(a | a.T) for a in dense]
    every = np.concatenate(edges).reshape(-1, 2)
    return FlatGraphs("random", sizes, np.array([len(e) for e in edges]), every, np.zeros(sizes.sum(), np.int64))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("room", [1, 200, 2**22])
def test_as_counted_by_hand(seed: int, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(substructures, "ROOM", room)  # one graph at a time, some, or all
    flat = random_flat(seed)
    found = count_patterns(flat)
    ends = np.cumsum(flat.num_edges)
    for k, pattern in enumerate(PATTERNS):
        expected: list[int] = []
        for n, edges in zip(flat.num_nodes, np.split(flat.edges, ends[:-1])):
            expected += by_hand(int(n), {tuple(e) for e in edges.tolist()}, pattern)
        assert found[:, k].tolist() == expected, pattern
    assert (found.sum(0) > 0).all()


def test_self_loops_and_repeated_edges_make_no_pattern() -> None:
    both = np.array([(a, b) for a in range(4) for b in range(4) if a != b])
    edges = np.concatenate([both, both[:3], [[0, 0], [2, 2]]])
    flat = FlatGraphs("K4", np.array([4]), np.array([len(edges)]), edges, np.zeros(4, np.int64))
    assert count_patterns(flat).tolist() == [[3, 3, 1]] * 4


def test_stars() -> None:
    flat = random_flat(0)
    ends = np.cumsum(flat.num_edges)
    expected: list[int] = []
    for n, edges in zip(flat.num_nodes, np.split(flat.edges, ends[:-1])):
        expected += [len(list(combinations(edges[edges[:, 0] == v, 1].tolist(), 3))) for v in range(n)]
    assert stars(flat).tolist() == expected and sum(expected) > 0
