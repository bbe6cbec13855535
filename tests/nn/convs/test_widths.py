"""Convs of a model's ``conv=`` that are not as wide as it asked for."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from torch import nn
from torch_geometric.nn import GATConv, GraphConv

import enfa
from enfa.nn.convs.gin import GIN
from enfa.testing import assert_same_as_full, random_graphs

MESSAGE = r"^Expected GATConv to return 8 columns, because conv\(in_channels=\d, out_channels=8\) made it, got 16: make"


def _side_by_side(in_channels: int, out_channels: int) -> GATConv:
    return GATConv(in_channels, out_channels, heads=2)


@pytest.mark.parametrize("norm", ["batch", "layer", None])
@pytest.mark.parametrize("kind", [enfa.DSGNN, enfa.DSSGNN, enfa.SSWLGNN, enfa.SUN])
def test_a_conv_of_another_width_is_named(kind: Any, norm: str | None) -> None:
    """Where the norm behind it would fail, or the next conv."""
    model = kind(3, 8, 2, 2, _side_by_side, norm=norm)
    for each in (model, copy.deepcopy(model)):
        with pytest.raises(ValueError, match=MESSAGE):
            enfa.make_plan(random_graphs(3, nodes=5), enfa.NodeMarking(), each)


def test_of_the_packages_kind_too() -> None:
    model = enfa.DSGNN(3, 8, 2, 2, lambda a, b: GIN(a, b + 1, 0, "batch"))
    with pytest.raises(ValueError, match=r"^Expected GIN to return 8 columns, .* got 9: make"):
        enfa.trace(model, random_graphs(3, nodes=5), enfa.NodeMarking())


def test_other_mistakes_are_told_as_they_are() -> None:
    model = enfa.DSGNN(3, 8, 2, 2, lambda a, b: GATConv(8, b))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        enfa.trace(model, random_graphs(3, nodes=5), enfa.NodeMarking())


def test_another_mistake_behind_a_conv_that_is_wider_on_purpose_is_told_as_it_is() -> None:
    model: Any = enfa.DSGNN(3, 8, 2, 1, _side_by_side)
    model.layers[0].norm, model.subgraph_mlp[0] = nn.BatchNorm1d(16), nn.Linear(16, 8)
    model.head[0].register_forward_pre_hook(lambda module, args: (_ for _ in ()).throw(ValueError("Expected something else")))
    with pytest.raises(ValueError, match=r"^Expected something else"):
        enfa.trace(model, random_graphs(3, nodes=5), enfa.NodeMarking())


def test_what_was_made_to_fit_afterwards_runs() -> None:
    model: Any = enfa.DSGNN(3, 8, 2, 1, _side_by_side)
    model.layers[0].norm, model.subgraph_mlp[0] = nn.BatchNorm1d(16), nn.Linear(16, 8)
    assert_same_as_full(model, enfa.NodeMarking(), random_graphs(4, nodes=5))


def test_tracing_a_conv_changes_nothing_of_what_it_reads() -> None:
    """Under a hook it writes messages down, where it adds up rows without one: padded plans have what tracing has seen."""
    program = enfa.trace(enfa.DSGNN(3, 8, 2, 2, GraphConv), random_graphs(3, nodes=5), enfa.NodeMarking())
    assert "incoming" in {name for _, name in program.needs}
