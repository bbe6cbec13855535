import pytest

import enfa
from enfa.testing import random_graphs


def test_unknown_contexts_list_the_known_ones() -> None:
    message = r"Expected context to be one of dss, identity, mpnn, got 'dsss' \(did you mean 'dss'\?\)"
    with pytest.raises(ValueError, match=message):
        enfa.DSSGNN(3, 4, 2, 2, context="dsss")


@pytest.mark.parametrize(
    ("context", "reads", "encoded"), [("dss", "input", True), ("identity", "output", False), ("mpnn", "output", True)]
)
def test_what_a_context_reads(context: str, reads: str, encoded: bool) -> None:
    model = enfa.DSSGNN(3, 5, 2, 2, "gin", context)
    program = enfa.trace(model, random_graphs(2, 5), enfa.NodeMarking())
    pairs = [n for n, step in enumerate(program.steps) if step.kind == "pairs" and step.op in ("start", "propagate", "join")]
    seen = [step.reads[0] for step in program.steps if step.op == "across"]
    of_nodes = [step for step in program.steps if step.kind == "nodes" and step.op == "propagate"]
    # of each layer what it reads, or what comes out of its conv
    assert seen == ([pairs[0], pairs[2]] if reads == "input" else [pairs[1], pairs[3]])
    assert len(of_nodes) == 2 * encoded
    branches = [layer.encoder for layer in model.layers]
    assert all(len(branch) == 2 * encoded for branch in branches)
    # the layer's input is 3 features and a mark wide in the first layer; its output never is
    if encoded:
        assert [branch[0].update[0].in_features for branch in branches] == [4 if reads == "input" else 5, 5]
