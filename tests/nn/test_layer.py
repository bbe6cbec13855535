"""One layer, step by step, on the full plan of a path of two nodes."""

import pytest
import torch
from torch_geometric.data import Data

import enfa


@pytest.mark.parametrize("residual", [False, True])
def test_activation_and_residual(residual: bool) -> None:
    """Width 2 = 1 feature and 1 mark, so that a residual connection fits already in the first layer."""
    graph = Data(x=torch.tensor([[1.0], [2.0]]), edge_index=torch.tensor([[0, 1], [1, 0]]))
    model = enfa.DSGNN(1, 2, 1, 1, "graphconv", norm=None, residual=residual)
    plan = enfa.make_plan([graph], enfa.NodeMarking(), model.spec, "full")
    first = model.encoder(plan, torch.float32)
    assert first.tolist() == [[1.0, 1.0], [2.0, 0.0], [1.0, 0.0], [2.0, 1.0]]
    layer = model.layers[0]
    swapped = first[[1, 0, 3, 2]]
    expected = torch.relu(layer.conv.own(first) + layer.conv.incoming(swapped))
    found = layer(first, plan.layers[0], plan, None, None, lambda k: torch.zeros(4))
    assert torch.allclose(found, expected + first if residual else expected)


def test_no_residual_where_widths_differ() -> None:
    graph = Data(x=torch.ones(2, 3), edge_index=torch.tensor([[0, 1], [1, 0]]))
    with_, without = (enfa.DSGNN(3, 5, 1, 1, norm=None, residual=r) for r in (True, False))
    without.load_state_dict(with_.state_dict(), strict=False)
    plan = enfa.make_plan([graph], enfa.NodeMarking(), with_.spec)
    assert torch.equal(with_.eval()(plan), without.eval()(plan))
