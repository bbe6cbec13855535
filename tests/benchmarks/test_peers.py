"""What benchmarks/peers.py says of rivals, without their code: our side of ESAN's network, and README's table."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from enfa.testing import assert_same_as_full, random_graphs

ROOT = Path(__file__).parents[2]


@pytest.fixture()
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield
    for name in [n for n in sys.modules if n.split(".")[0] in ("peer_parts", "gpu_parts", "readme")]:
        del sys.modules[name]


@pytest.mark.parametrize("invariant", [True, False])
@pytest.mark.parametrize("conv", ["gin", "gine"])
def test_our_side_of_esans_network_is_exact(benchmarks: None, conv: str, invariant: bool) -> None:
    torch.set_num_threads(1)
    esan, cases = importlib.import_module("peer_parts.esan"), importlib.import_module("gpu_parts.cases")
    gin = conv == "gin"
    case = cases.Case("small", "", conv, 8, 2, "concat" if gin else "last", {})
    graphs = random_graphs(4, 7, channels=3) if gin else random_graphs(4, 7, channels=esan.ATOMS, edge_channels=esan.BONDS)
    model = esan.ours_of(3 if gin else esan.ATOMS, case, 2, [4, 4], 1, invariant)
    assert_same_as_full(model, esan.POLICIES["marking"], graphs)


def test_tables_of_theirs_are_one_of_ours(benchmarks: None) -> None:
    pairs = importlib.import_module("peer_parts.peer").Pairs()
    theirs, ours = [torch.ones(2, 3), torch.zeros(1, 3)], torch.full((3, 3), 7.0)
    pairs.join(theirs, ours, torch.t)
    pairs.copy()
    assert torch.equal(ours, torch.cat(theirs).T)


def test_readme_shows_the_best_of_what_was_measured(benchmarks: None, tmp_path: Path) -> None:
    figures = importlib.import_module("readme").peer_figures
    path = tmp_path / "peers.json"
    assert figures(path) == ""
    steps = {
        "theirs": {"ms": 9.41}, "theirs, torch.compile": {"failed": "it did"}, "theirs, CUDA graph": {"ms": 5.0},
        "theirs, torch.compile, CUDA graph": {"ms": 4.0}, "ours, captured": {"ms": 0.5},
    }  # fmt: skip
    one = {"commit": "abc", "away": {"outputs": 1e-14, "gradients": 2e-12}, "steps": steps}
    about = {"graphs": 128, "device": "a GPU", "torch": "2.11", "date": "2026-11-16"}
    path.write_text(json.dumps({**about, "peers": {"ESAN, PROTEINS, marking": one, "SUN": one}}))
    text = figures(path)
    for line in ("| ESAN, eager | 9.4 |", "measured and faster | 4 |", "| the same network here, captured | 0.5 |"):
        assert line in text
    assert "torch.compile |" not in text and "2e-12" in text and "SUN" not in text
