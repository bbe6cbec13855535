from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

import enfa
from enfa.testing import random_graphs


@pytest.fixture(scope="session")
def molecules() -> list[Data]:
    """With labels, and an attribute of each graph."""
    found = random_graphs(40, 8, channels=[3, 2], edge_channels=[3, 2])
    for i, graph in enumerate(found):
        graph.y, graph.heat = torch.tensor([i / 4]), torch.tensor([[1.0, i]])
    return found


@pytest.fixture(scope="session")
def gine() -> enfa.DSGNN:
    torch.manual_seed(0)
    return enfa.DSGNN([3, 2], 6, 2, 3, "gine", edge_channels=[3, 2])


@pytest.fixture(scope="session")
def shards(gine: enfa.DSGNN) -> Callable[..., Any]:
    """Compiles into shards of seven graphs, by this process."""

    def write(graphs: Any, out: Any, **options: Any) -> Any:
        sizes = {} if "shards" in options else {"shard_size": 7}
        given = {"policy": enfa.NodeMarking(), "model": gine, "workers": 1, "progress": False, **sizes, **options}
        return enfa.compile(graphs, given.pop("policy"), given.pop("model"), out=out, **given)

    return write


@pytest.fixture(scope="session")
def bytes_of() -> Callable[[Path], dict[str, bytes]]:
    return lambda folder: {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="session")
def undisturbed(molecules: list[Data], shards: Callable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shards") / "undisturbed"
    shards(molecules, folder)
    return folder
