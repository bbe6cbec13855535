from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from enfa.datasets import load
from enfa.datasets.official.compact import from_compact


@pytest.mark.parametrize("name", ["PROTEINS", "EXP", "CEXP"])
def test_the_compact_file_is_the_benchmark(data: Path, laid_out: Callable[[str], Path], name: str) -> None:
    compact, raw = from_compact(name, data), load(name, laid_out(name))
    assert repr(compact) == repr(raw)
    assert (compact.labels == raw.labels).all()
    for one, other in zip(compact.graphs, raw.graphs):
        assert torch.equal(one.x, other.x)
        assert {tuple(e) for e in one.edge_index.T.tolist()} == {tuple(e) for e in other.edge_index.T.tolist()}


def test_molecules_know_their_channels(data: Path, laid_out: Callable[[str], Path], ogb: None) -> None:
    compact, raw = from_compact("ogbg-moltox21", data), load("ogbg-moltox21", laid_out("ogbg_moltox21"))
    assert repr(compact) == repr(raw)
    assert all((compact.split()[part] == raw.split()[part]).all() for part in ("train", "valid", "test"))
