"""Fewer layers of a compiled dataset are what compiling for fewer layers gives, but for the order of rows."""

from __future__ import annotations

import numpy as np
import pytest
from canonical import Numbers, of_plan

import enfa
import enfa.batch.rows
from enfa.plan.merge import merge_rows
from enfa.testing import degenerate_graphs, random_graphs

SPECS = [
    {},
    {"edge_attr": True, "degrees": True},
    {"context": "input", "context_encoder": True},
    {"context": "output", "share": "graph"},
]


@pytest.mark.parametrize("pairs", [60, 10**9])
@pytest.mark.parametrize("options", SPECS, ids=str)
@pytest.mark.parametrize("policy", [enfa.NodeMarking(), enfa.NodeDeletion(), enfa.EdgeDeletion()], ids=repr)
def test_same_rows(policy: enfa.Policy, options: dict, pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enfa.batch.rows, "_PAIRS", pairs)
    graphs = random_graphs(10, 9, channels=[3, 2], edge_channels=[3, 2])
    graphs += degenerate_graphs([3, 2], [3, 2]).values()
    deep = enfa.compile(graphs, policy, enfa.Spec(4, **options), progress=False)
    for layers in (1, 2, 3, 4):
        cut = deep.first_layers(layers)
        whole = enfa.compile(graphs, policy, enfa.Spec(layers, **options), progress=False)
        assert cut.key == whole.key
        assert cut.cost().rows == whole.cost().rows and cut.cost().edges == whole.cost().edges
        assert cut.rows is not None and whole.rows is not None
        # pools may be written otherwise: a node that every subgraph affects in four layers has no base row here
        assert cut.rows.affected == whole.rows.affected
        np.testing.assert_array_equal(cut.rows.graph_rows, whole.rows.graph_rows)
        number = Numbers()
        mine, theirs = (of_plan(number, compiled[:])[0] for compiled in (cut, whole))
        assert [[+b for b in bags] for bags in mine.bags] == [[+b for b in bags] for bags in theirs.bags]
        for name in ("conv", "table", "context", "encoded"):
            assert getattr(mine, name) == getattr(theirs, name)
        # all that one has, the other knows
        merge_rows(whole.rows, cut.rows, options.get("context") == "input")
        assert whole.cost().rows == cut.cost().rows


@pytest.mark.parametrize("layers", [0, 5])
def test_layers_that_are_not_there(layers: int) -> None:
    compiled = enfa.compile(random_graphs(3), enfa.NodeMarking(), enfa.Spec(4), progress=False)
    with pytest.raises(ValueError, match="layers"):
        compiled.first_layers(layers)


def test_other_readouts_are_refused() -> None:
    compiled = enfa.compile(random_graphs(3), enfa.NodeMarking(), enfa.Spec(2, output="root"), progress=False)
    with pytest.raises(ValueError, match="output='graph'"):
        compiled.first_layers(1)


def test_full_plans_of_fewer_layers() -> None:
    compiled = enfa.compile(random_graphs(3), enfa.NodeMarking(), enfa.Spec(4), progress=False, kind="full")
    assert len(compiled.first_layers(2)[:].layers) == 2
