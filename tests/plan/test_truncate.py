"""Fewer layers of a compiled dataset are what compiling for fewer layers gives, byte by byte."""

from __future__ import annotations

from pathlib import Path

import pytest

import enfa
import enfa.batch.rows
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
def test_same_file(
    policy: enfa.Policy, options: dict, pairs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enfa.batch.rows, "_PAIRS", pairs)
    graphs = random_graphs(10, 9, channels=[3, 2], edge_channels=[3, 2])
    graphs += degenerate_graphs([3, 2], [3, 2]).values()
    deep = enfa.compile(graphs, policy, enfa.Spec(4, **options), progress=False)
    for layers in (1, 2, 3, 4):
        deep.first_layers(layers).save(tmp_path / "cut")
        enfa.compile(graphs, policy, enfa.Spec(layers, **options), progress=False).save(tmp_path / "compiled")
        assert (tmp_path / "cut").read_bytes() == (tmp_path / "compiled").read_bytes()


@pytest.mark.parametrize("layers", [0, 5])
def test_layers_that_are_not_there(layers: int) -> None:
    compiled = enfa.compile(random_graphs(3), enfa.NodeMarking(), enfa.Spec(4), progress=False)
    with pytest.raises(ValueError, match="layers"):
        compiled.first_layers(layers)


def test_full_plans_of_fewer_layers() -> None:
    compiled = enfa.compile(random_graphs(3), enfa.NodeMarking(), enfa.Spec(4), progress=False, kind="full")
    assert len(compiled.first_layers(2)[:].layers) == 2
