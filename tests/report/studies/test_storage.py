from __future__ import annotations

from pathlib import Path

import pytest

import enfa
from enfa.datasets import from_npz
from enfa.report.program import ds_program
from enfa.report.studies.storage import PARTS, distinct_bytes, measure_storage
from enfa.testing import random_graphs


@pytest.mark.parametrize("policy", [enfa.NodeMarking(), enfa.NodeDeletion(), enfa.EdgeDeletion()], ids=repr)
def test_entries_are_what_would_be_written(policy: enfa.Policy, tmp_path: Path) -> None:
    graphs = random_graphs(12, 9, channels=[3, 2], edge_channels=[3, 2])
    whole, *others = measure_storage(graphs, policy, [2, 3])
    assert [(e["kind"], e["layers"]) for e in others] == [("ego", 2), ("distinct", 2), ("ego", 3), ("distinct", 3)]
    assert whole["kind"] == "conventional" and whole["parts"]["pairs"] == 0
    for entry in (whole, *others):
        assert set(entry["parts"]) == set(PARTS) and sum(entry["parts"].values()) == entry["bytes"]
    for entry in others:
        assert entry["saved_percent"] == pytest.approx(100 - 100 * entry["bytes"] / whole["bytes"], abs=0.001)
        if entry["kind"] == "distinct":
            compiled = enfa.compile(graphs, policy, ds_program(3, edges=True), progress=False).first_layers(entry["layers"])
            compiled.save(tmp_path / "x.enfa")
            assert entry["bytes"] == (tmp_path / "x.enfa").stat().st_size
            assert entry["parts"] == distinct_bytes(compiled)


@pytest.mark.parametrize(("file", "least"), [("PROTEINS", 80), ("EXP", 90)])
def test_what_distinct_rows_save(file: str, least: float, shared_data: Path) -> None:
    graphs = from_npz(shared_data / f"{file}.npz").graphs
    found = [e for e in measure_storage(graphs, enfa.NodeMarking(), [2, 5]) if e["kind"] == "distinct"]
    assert all(e["saved_percent"] > least for e in found) and len(found) == 2
