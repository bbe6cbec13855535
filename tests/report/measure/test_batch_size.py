import numpy as np
import pytest

import enfa
from enfa.plan.check import KINDS
from enfa.report.measure.batch_size import data_bytes, largest_within
from enfa.report.program import ds_program
from enfa.testing import random_graphs


@pytest.mark.parametrize("allowed", [40, 41, 79, 80, 1000, 10_000])
def test_largest_batch(allowed: int) -> None:
    found = largest_within(lambda batch: 10 * len(batch), 4, 100, allowed)
    best = min(allowed // 10, 100)
    assert 10 * found <= allowed and best - max(1, best // 16) <= found <= best


def test_never_smaller_than_the_baselines() -> None:
    assert largest_within(lambda batch: 10**9, 4, 100, 40) == 4


def test_bytes_of_the_paper_are_counted_by_hand() -> None:
    """The path of three nodes with marking: 3 subgraphs of 4 directed edges; with L = 1 ego nets reach everywhere."""
    path = enfa.testing.random_graph(3, seed=1)
    path.edge_index = path.edge_index.new_tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    longer = enfa.testing.random_graph(9, seed=2)  # which the batch does not have
    full, ego, distinct = (
        enfa.compile([longer, path], enfa.NodeMarking(), ds_program(1), progress=False, kind=kind) for kind in KINDS
    )
    batch = np.array([1])
    assert data_bytes(full, batch, attributes=0) == 3 * 4 * 16
    assert data_bytes(full, batch, attributes=2) == 3 * 4 * 32
    assert data_bytes(ego, batch, attributes=0) == (3 * 4 + 4) * 16 + 9 * 8
    assert data_bytes(distinct, batch, attributes=0) == distinct[[1]].cost().bytes > 0


def test_grows_with_the_batch() -> None:
    for kind in KINDS:
        compiled = enfa.compile(random_graphs(8), enfa.NodeMarking(), ds_program(2), progress=False, kind=kind)
        sizes = [data_bytes(compiled, np.arange(b), 0) for b in range(1, 9)]
        assert sizes == sorted(sizes) and sizes[0] < sizes[-1]
