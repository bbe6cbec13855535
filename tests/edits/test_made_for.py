import pytest

from enfa.cli.choices import policy_of
from enfa.edits import EgoNets, NeighborMarking, NodeMarking, Subsample
from enfa.edits.made_for import check_policy, own_policy
from enfa.nn.models.registry import MODELS


@pytest.mark.parametrize("model", MODELS)
def test_a_models_own_policy_is_one_that_it_takes(model: str) -> None:
    check_policy(model, policy_of(own_policy(model)))


def test_i2gnn_needs_marked_neighbours() -> None:
    class Own(NodeMarking):
        """May mark what it likes."""

    for policy in (NeighborMarking(2), Subsample(NeighborMarking(2), count=2), Own()):
        check_policy("i2gnn", policy)
    for policy in (EgoNets(2), Subsample(NodeMarking(), count=2)):
        with pytest.raises(ValueError, match=r"marks a node and one of its neighbours for i2gnn, got .*: use neighbor_marking"):
            check_policy("i2gnn", policy)
        check_policy("ngnn", policy)
