"""Training on graphs in which edits reach every node at once, and whose last batch is a single graph."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from enfa.training import fit, read_config


def _write(path: Path) -> Path:
    """K2 to K9, stars and cycles, with equal features; 21 of them train, in batches of 4, so that one is left over."""
    graphs = []
    for n in range(2, 10):
        graphs += [list(combinations(range(n), 2)), [(0, i) for i in range(1, n)]]
        graphs += [[(i, (i + 1) % n) for i in range(n)]] if n > 2 else []
    graphs = [graphs[i] for i in np.random.default_rng(0).permutation(len(graphs))] + graphs[-4:]
    nodes = [1 + max(map(max, edges)) for edges in graphs]
    number = np.arange(len(graphs))
    np.savez(
        path, num_nodes=nodes, num_edges=[len(g) for g in graphs], edges=np.array([e for g in graphs for e in g]),
        node_label=np.zeros(sum(nodes), int), y=number % 2, split_train=number[:21], split_valid=number[21:24],
        split_test=number[24:],
    )  # fmt: skip
    return path


@pytest.mark.parametrize("settings", [{}, {"model": "dss"}, {"policy": "edge_deletion"}], ids=str)
def test_losses_are_those_of_the_full_plan(settings: dict, tmp_path: Path, config_file: Callable[..., Path]) -> None:
    # two layers: where all rows of a batch are equal, every norm multiplies rounding errors of gradients by 316, and with more
    # layers the conventional model's own gradients are made of nothing else
    data, losses = str(_write(tmp_path / "complete.npz")), []
    for plan in ("full", "distinct"):
        path = config_file(plan, dataset=data, plan=plan, batch_size=4, epochs=6, **settings)
        record = fit(read_config(path), progress=False)
        assert record is not None
        losses.append(record.loss)
    assert len(losses[0]) == 6 and max(losses[0]) < 10
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-6)
