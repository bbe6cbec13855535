from __future__ import annotations

from itertools import combinations

import pytest
import torch
from torch_geometric.data import Data

import enfa
from enfa.graphs import check_graphs
from enfa.testing import assert_same_as_full, degenerate_graphs, random_graph

from .conftest import distances_in, written_out

GRAPHS = [random_graph(10, 2.0, seed=1), random_graph(8, 4.0, seed=2, loops=True), *degenerate_graphs().values()]


@pytest.mark.parametrize("hide", [True, False])
@pytest.mark.parametrize("hops", [None, 0, 1, 2])
def test_written_out_one_by_one(hops: int | None, hide: bool) -> None:
    for mark in (True, "distances") if hops is not None else (True,):
        policy = enfa.PairMarking(hops, mark, hide)
        for graph in GRAPHS:
            bag, pairs = written_out(policy, graph), list(combinations(range(graph.num_nodes), 2))
            if not pairs:
                assert len(bag) == 1 and set(bag[0][0].values()) <= {0}
                continue
            edges = {tuple(e) for e in graph.edge_index.T.tolist()}
            for (u, v), (nodes, found) in zip(pairs, bag, strict=True):
                left = edges - {(u, v), (v, u)} if hide else edges
                # in the graph without the edge: a pair must not tell whether it had one
                apart = distances_in(
                    Data(edge_index=torch.tensor(sorted(left), dtype=torch.long).reshape(-1, 2).T, num_nodes=graph.num_nodes)
                )
                nearest = {w: int(min(apart[w, u], apart[w, v])) for w in range(graph.num_nodes)}
                inside = {w for w, hop in nearest.items() if hops is None or hop <= hops}
                assert set(nodes) == inside
                assert set(found) == {(a, b) for a, b in left if a in inside and b in inside}
                expected = {w: nearest[w] + 1 if mark == "distances" else int(w in (u, v)) for w in inside}
                assert nodes == expected
        assert policy.mark_channels == (1 if mark is True else hops + 2)  # type: ignore[operator]


def test_pairs_of_ones_own() -> None:
    """Those of a list, in its order, are those of the whole bag."""
    graph = GRAPHS[0]
    every = dict(zip(combinations(range(10), 2), written_out(enfa.PairMarking(1), graph)))
    chosen = [[4, 2], [0, 9], [2, 4]]
    policy = enfa.PairMarking(1, pairs=[chosen])
    assert written_out(policy, graph) == [every[min(p), max(p)] for p in chosen]
    edits = policy.edits(check_graphs([graph, GRAPHS[1]]))
    assert edits.root is not None and edits.root.tolist() == [*chosen, [-1, -1]]  # the second graph has no pairs


def test_parallel_edges_are_hidden_all() -> None:
    graph = Data(x=torch.zeros(3, 1), edge_index=torch.tensor([[0, 0, 1, 1, 1, 2], [1, 1, 0, 0, 2, 1]]))
    assert set(written_out(enfa.PairMarking(), graph)[0][1]) == {(1, 2), (2, 1)}


def test_an_edge_and_no_edge_look_the_same() -> None:
    """Of two graphs that differ in one edge, the output for its ends is the same; otherwise it would tell the label."""
    index = random_graph(10, 2.5, seed=5).edge_index
    u, v = index[:, 0].tolist()
    there = {(a, b) for a, b in index.T.tolist()}
    without = torch.tensor(sorted(there - {(u, v), (v, u)})).T
    policy = enfa.PairMarking(2, mark="distances", pairs=[[[u, v]]])
    torch.manual_seed(0)
    model = enfa.DSGNN(3, 8, 1, 3, norm="layer", readout="root", mark_channels=policy.mark_channels).double()
    x = torch.randn(10, 3, dtype=torch.float64)
    out = [model(enfa.make_plan([Data(x=x, edge_index=e)], policy, model)) for e in (index, without)]
    assert out[0].shape == (1, 1) and torch.allclose(out[0], out[1], rtol=0, atol=1e-14)
    seen = enfa.PairMarking(2, mark="distances", hide=False, pairs=[[[u, v]]])
    out = [model(enfa.make_plan([Data(x=x, edge_index=e)], seen, model)) for e in (index, without)]
    assert not torch.allclose(out[0], out[1], rtol=0, atol=1e-6)


def test_chosen_pairs_are_the_same_as_full() -> None:
    graphs = [random_graph(9, 2.5, seed=7), random_graph(12, 3.0, seed=8)]
    policy = enfa.PairMarking(1, mark="distances", pairs=[[[0, 5], [3, 4]], [[11, 2], [0, 1], [7, 6]]])
    model = enfa.DSGNN(3, 6, 2, 3, readout="root", mark_channels=policy.mark_channels)
    assert_same_as_full(model, policy, graphs, steps=2)


def test_models_are_traced_on_pieces_and_on_other_graphs() -> None:
    """Which have other pairs than the dataset's."""
    large, small = random_graph(300, 2.0, seed=9), random_graph(6, 2.0, seed=10)
    pairs = [[[0, 299], [7, 150]], [[5, 1]]]
    for policy in (enfa.PairMarking(1, pairs=pairs), enfa.Subsample(enfa.PairMarking(1, pairs=pairs), count=1)):
        model = enfa.DSGNN(3, 4, 1, 2, readout="root", norm=None)
        assert len(model(enfa.make_plan([large], policy, model))) == (2 if isinstance(policy, enfa.PairMarking) else 1)
        compiled = enfa.compile([large, small], policy, model, progress=False)
        for place, graph in enumerate((large, small)):
            one = policy if place == 0 else enfa.PairMarking(1, pairs=pairs[1:])
            assert torch.allclose(model(compiled[[place]]), model(enfa.make_plan([graph], one, model)), atol=1e-6)


def test_refuses_nonsense() -> None:
    for options, message in [
        ({"hops": -1}, "Expected hops to be an integer >= 0, got -1"),
        ({"mark": False}, "Expected mark to be True or 'distances', got False"),
        ({"mark": "distances"}, "Expected hops for mark='distances', got None"),
        ({"pairs": [[[1, 1]]]}, r"Expected pairs of two different nodes in graph 0, got \[1, 1\]"),
        ({"pairs": [[], [[-1, 1]]]}, r"Expected pairs of two different nodes in graph 1, got \[-1, 1\]"),
        ({"pairs": [[[0.5, 1]]]}, "Expected the pairs of graph 0 to hold integers, got 0.5"),
    ]:
        with pytest.raises(ValueError, match=message):
            enfa.PairMarking(**options)  # type: ignore[arg-type]
    many = enfa.PairMarking(pairs=[[[0, k] for k in range(1, 12)]])
    with pytest.raises(ValueError, match=r"<11 pairs>\): Expected pairs of the 10 nodes of graph 0, got node 11"):
        many.edits(check_graphs([GRAPHS[0]]))
