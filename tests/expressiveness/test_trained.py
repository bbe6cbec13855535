"""BREC's protocol: what training tells apart is within what the class can tell apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from known_graphs import ring, rook_and_shrikhande, triangles_and_hexagon

import enfa
from enfa.datasets import load_brec
from enfa.expressiveness.hotelling import THRESHOLD, t_squared
from enfa.expressiveness.trained import Protocol, relabelled, train_pair
from enfa.testing import random_graph

QUICK = Protocol(relabellings=8, batch_size=8)


def _make() -> torch.nn.Module:
    return enfa.DSGNN(1, 32, 16, 3)


def test_statistic_by_hand() -> None:
    rng = torch.Generator().manual_seed(0)
    first, second = torch.randn(20, 3, generator=rng), torch.randn(20, 3, generator=rng) + 1
    difference = (first - second).double().numpy()
    mean, spread = difference.mean(0), np.cov(difference.T)
    assert np.isclose(t_squared(first, second, 0.0), mean @ np.linalg.inv(spread) @ mean, rtol=1e-10)
    one = torch.ones(8, 4)
    assert t_squared(one, one, 1e-8) == 0.0
    assert t_squared(one, one + 1e-3, 1e-8) == pytest.approx(4 * 1e-6 / 1e-8, rel=1e-3)
    with pytest.raises(ValueError, match="two equally long lists"):
        t_squared(one, one[:4], 1e-8)


def test_threshold() -> None:
    """The 95% quantile of F(16, 16), by numerical integration of its density, times 31."""
    x = np.linspace(1e-9, THRESHOLD / 31, 400_001)
    density = x**7 / (1 + x) ** 16
    tail = np.linspace(1e-9, 1.0, 400_001)
    integral = getattr(np, "trapezoid", None) or np.trapz  # of NumPy 2, and of 1
    whole = 2 * integral(tail**7 / (1 + tail) ** 16, tail)  # F and 1 / F have one distribution
    assert integral(density, x) / whole == pytest.approx(0.95, abs=1e-4)


def test_relabelled_copies_are_the_same_graph() -> None:
    graph = random_graph(9, 3.0, edge_channels=2, seed=3)
    copy = relabelled(graph, np.random.default_rng(0))
    assert not torch.equal(copy.edge_index, graph.edge_index)
    model = enfa.DSGNN(3, 8, 2, 3, "gine", edge_channels=2).double().eval()
    out = model(enfa.make_plan([graph, copy], enfa.NodeMarking(), model)).detach()
    assert torch.allclose(out[0], out[1], rtol=1e-12)


def test_within_the_bound() -> None:
    for pair, apart in ((triangles_and_hexagon(), True), (rook_and_shrikhande(), False), ([ring(7), ring(7)], False)):
        torch.manual_seed(5)
        state = torch.random.get_rng_state()
        found = train_pair(pair, enfa.NodeMarking(), _make, QUICK)
        assert torch.equal(state, torch.random.get_rng_state()), "a seed of its own, and nobody else's"
        assert (enfa.power(pair, enfa.NodeMarking(), _make()).first != [None]) == apart
        assert found.apart == apart and found.reliable and found.reliability < 1.0
        assert found == train_pair(pair, enfa.NodeMarking(), _make, QUICK)


def test_edge_deletion_goes_further() -> None:
    policy = enfa.EdgeDeletion()
    marks = policy.mark_channels
    found = train_pair(rook_and_shrikhande(), policy, lambda: enfa.DSGNN(1, 32, 16, 3, mark_channels=marks), QUICK)
    assert found.apart and found.reliable


def test_some_pairs_of_brec(shared_data: Path) -> None:
    data, count = load_brec(shared_data), 0
    for p in (2, 120, 170):
        pair = [graph.clone() for graph in data.graphs[2 * p : 2 * p + 2]]
        found = train_pair(pair, enfa.NodeMarking(), lambda: enfa.DSSGNN([1], 32, 16, 2), QUICK, number=p)
        bound = enfa.power(pair, enfa.NodeMarking(), "dss", [2]).first != [None]
        assert found.reliable and found.apart <= bound
        count += found.apart
    assert count > 0


def test_wrong_settings() -> None:
    with pytest.raises(ValueError, match="an even batch size, got 32 and 3"):
        Protocol(batch_size=3)
    with pytest.raises(ValueError, match="Expected a pair of graphs, got 1"):
        train_pair([ring(3)], enfa.NodeMarking(), _make)
