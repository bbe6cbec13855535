import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from enfa.cli.app import app
from enfa.datasets import from_npz
from enfa.report.machine import machine
from enfa.report.measure.storage import measure_breakdown, measure_table
from enfa.report.measure.store import Store
from enfa.report.settings import POLICIES, TINY


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Six rings of different length, with two kinds of nodes."""
    sizes = np.arange(4, 10)
    ring = [np.stack([np.arange(n), (np.arange(n) + 1) % n], 1) for n in sizes]
    label = np.concatenate([np.arange(n) % 2 for n in sizes])
    file = tmp_path / "EXP.npz"
    edges = np.concatenate(ring)
    np.savez(file, num_nodes=sizes, num_edges=sizes, edges=edges, node_label=label, y=np.arange(6) % 2)
    return file


def test_agrees_with_enfa_storage(path: Path, tmp_path: Path) -> None:
    settings = TINY.to(datasets=("EXP",), storage_graphs=None, layers=(2, 3))
    store = Store(tmp_path / "results", settings, machine())
    keys = list(measure_table(lambda name: from_npz(path, name=name), settings, store))
    assert keys == [f"EXP | {policy}" for policy in POLICIES]
    out = str(tmp_path / "storage.json")
    options = ["--datasets", str(path), "--layers", "2-3", "--json", "--out", out]
    result = CliRunner().invoke(app, ["storage", *options])
    assert result.exit_code == 0, result.output
    printed = {r["policy"].replace("_", " "): r["entries"] for r in json.loads(result.stdout)["results"]}
    for policy in POLICIES:
        assert store.section("storage")[f"EXP | {policy}"]["entries"] == printed[policy]


def test_breakdown_counts_nothing_twice(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = TINY.to(datasets=("EXP",), layers=(2, 3))
    store = Store(tmp_path / "results", settings, machine())
    read: list[str] = []

    def source(name: str):  # type: ignore[no-untyped-def]
        read.append(name)
        return from_npz(path, name=name)

    list(measure_table(source, settings, store))
    before = len(read)
    list(measure_breakdown(source, settings, store))
    assert len(read) == before
    assert store.section("breakdown") == store.section("storage")
