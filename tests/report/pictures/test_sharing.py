import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from enfa import DSGNN, DSSGNN, EdgeDeletion, NodeDeletion, NodeMarking, Policy, trace
from enfa.report.pictures.sharing import sharing_of
from enfa.report.program import ds_program
from enfa.testing import degenerate_graphs, random_graphs


@pytest.fixture
def path() -> Data:
    """a - b - c, the worked example of enfa.plan.table."""
    return Data(x=torch.zeros(3, 1), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))


def test_worked_example(path: Data) -> None:
    found = sharing_of(path, NodeMarking(), ds_program(1))
    assert (found.conventional, found.distinct) == (9, [2, 5])
    assert found.base.tolist() == [[0, 0, 0], [0, 1, 0]]
    assert found.rows[0].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert found.rows[1].tolist() == [[2, 3, 0], [4, 5, 4], [0, 3, 2]]
    assert found.node_mark.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert not found.edge_value.any()


def test_what_is_deleted(path: Data) -> None:
    found = sharing_of(path, NodeDeletion(), ds_program(1))
    assert (found.rows[1] < 0).tolist() == np.eye(3, dtype=bool).tolist()
    gone = (found.edges == np.arange(3)[:, None, None]).any(1)  # an end is the deleted node
    assert np.array_equal(found.edge_value, np.where(gone, -1, 0))
    without_edge = sharing_of(path, EdgeDeletion(), ds_program(1))
    assert [sorted(map(tuple, without_edge.edges[:, v < 0].T.tolist())) for v in without_edge.edge_value] == [
        [(0, 1), (1, 0)],
        [(1, 2), (2, 1)],
    ]


def test_some_subgraphs(path: Data) -> None:
    found = sharing_of(path, NodeMarking(), ds_program(1)).of(np.array([2, 0]))
    assert found.rows[1].tolist() == [[0, 3, 2], [2, 3, 0]]
    assert found.node_mark.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert found.edge_value.shape == (2, 4)


@pytest.mark.parametrize("policy", [NodeMarking(), NodeDeletion(), NodeDeletion(True), EdgeDeletion()], ids=repr)
def test_numbers_are_those_of_the_distinct_plan(policy: Policy) -> None:
    for graph in [*random_graphs(4, seed=1, channels=1), *degenerate_graphs(channels=1).values()]:
        found = sharing_of(graph, policy, ds_program(2))
        for base, rows, distinct in zip(found.base, found.rows, found.distinct):
            met = np.concatenate([base, rows.reshape(-1)])
            numbers = np.unique(met[met >= 0])
            assert np.array_equal(numbers, np.arange(len(numbers)))
            assert len(np.unique(rows[rows >= 0])) == distinct  # what only the unedited graph has is no row of the plan


def test_subgraphs_that_see_each_other_are_refused(path: Data) -> None:
    rooted = trace(DSGNN(1, 2, 1, 1, readout="root"), [path], NodeMarking())
    assert sharing_of(path, NodeMarking(), rooted).distinct == [2, 5]
    with pytest.raises(ValueError, match="Expected steps that do not mix subgraphs to draw, got 'across 0'"):
        sharing_of(path, NodeMarking(), trace(DSSGNN(1, 2, 1, 1), [path], NodeMarking()))
