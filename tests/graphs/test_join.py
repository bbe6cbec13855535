import numpy as np
import pytest
import torch

from enfa.graphs import check_graphs
from enfa.graphs.join import join, renumbered
from enfa.testing import degenerate_graphs, random_graphs


@pytest.mark.parametrize("edge_channels", [None, [3]])
def test_joined_is_checked_together(edge_channels: list[int] | None) -> None:
    first = random_graphs(3, 5, seed=1, channels=[4], edge_channels=edge_channels)
    second = random_graphs(3, 5, seed=2, channels=[5], edge_channels=edge_channels)
    second += degenerate_graphs([3], edge_channels).values()
    old = check_graphs(first)
    new = renumbered(check_graphs(second), old.x, old.edge_attr, old.categories)
    assert np.array_equal(new.x[: len(old.x)], old.x) and len(np.unique(new.x, axis=0)) == len(new.x)
    found, expected = join(old, new), check_graphs(first + second)
    for name in ("node_ptr", "src", "dst", "order", "in_ptr", "edge_ptr"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    assert np.array_equal(found.x[found.node_kind], expected.x[expected.node_kind])
    if edge_channels is not None:
        assert found.edge_attr is not None and expected.edge_attr is not None
        assert np.array_equal(found.edge_attr[found.edge_kind], expected.edge_attr[expected.edge_kind])


def test_refuses_other_features() -> None:
    old = check_graphs(random_graphs(2, channels=2))
    with pytest.raises(ValueError, match="Expected 'x' with 2 columns of float32, as compiled, got 3 columns"):
        renumbered(check_graphs(random_graphs(2, channels=3)), old.x, old.edge_attr, old.categories)
    with pytest.raises(ValueError, match="got 2 columns of int64"):
        renumbered(check_graphs(random_graphs(2, channels=[2, 2])), old.x, old.edge_attr, old.categories)
    with pytest.raises(ValueError, match="Expected graphs without 'edge_attr', as compiled"):
        renumbered(check_graphs(random_graphs(2, channels=2, edge_channels=1)), old.x, None, old.categories)
    attr = torch.zeros(1, 1).numpy()
    with pytest.raises(ValueError, match="Expected graphs with 'edge_attr', as compiled"):
        renumbered(check_graphs(random_graphs(2, channels=2)), old.x, attr, old.categories)
