import pytest

import enfa


def test_unknown_contexts_list_the_known_ones() -> None:
    message = r"Expected context to be one of dss, identity, mpnn, got 'dsss' \(did you mean 'dss'\?\)"
    with pytest.raises(ValueError, match=message):
        enfa.DSSGNN(3, 4, 2, 2, context="dsss")


@pytest.mark.parametrize(
    ("context", "reads", "encoded"), [("dss", "input", True), ("identity", "output", False), ("mpnn", "output", True)]
)
def test_what_a_context_reads(context: str, reads: str, encoded: bool) -> None:
    model = enfa.DSSGNN(3, 5, 2, 2, "gcn", context)
    assert model.spec == enfa.Spec(2, reads, encoded, degrees=True)
    branches = [layer.context for layer in model.layers]
    assert all((branch.conv is not None) == encoded for branch in branches)
    # the layer's input is 3 features and a mark wide in the first layer; its output never is
    if encoded:
        assert [branch.conv.linear.in_features for branch in branches] == [4 if reads == "input" else 5, 5]
