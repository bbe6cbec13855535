import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from enfa.datasets import ATOM_CHANNELS, BOND_CHANNELS, load


def graph(nodes: int, label: int) -> tuple[torch.Tensor, ...]:
    """A path of ``nodes`` atoms, in the order of the official files: x, edge_attr, edge_index, y."""
    steps = torch.arange(nodes - 1)
    edge_index = torch.stack([torch.cat([steps, steps + 1]), torch.cat([steps + 1, steps])])
    y = torch.zeros(1, 10)
    y[0, label] = 1
    return torch.full((nodes, 9), 1), torch.ones(edge_index.size(1), 3, dtype=torch.int64), edge_index, y


def write(root: Path, **parts: Any) -> Path:
    folder = root / "peptides-func" / "raw"
    folder.mkdir(parents=True, exist_ok=True)
    graphs = {"train": [graph(3, 0), graph(1, 1)], "val": [graph(2, 2)], "test": [graph(4, 3), graph(5, 4)]}
    for part, value in (graphs | parts).items():
        torch.save(value, folder / f"{part}.pt")
    return root


def test_format(tmp_path: Path) -> None:
    toy = load("peptides-func", write(tmp_path))
    assert (toy.task, toy.num_outputs, toy.metric) == ("binary", 10, "ap")
    assert (toy.in_channels, toy.edge_channels) == (ATOM_CHANNELS, BOND_CHANNELS)
    assert [g.num_nodes for g in toy.graphs] == [3, 1, 2, 4, 5]
    assert [g.num_edges for g in toy.graphs] == [4, 0, 2, 6, 8]
    assert toy.graphs[0].edge_index.tolist() == [[0, 1, 1, 2], [1, 2, 0, 1]]
    assert np.argmax(toy.labels, axis=1).tolist() == [0, 1, 2, 3, 4]
    assert {k: v.tolist() for k, v in toy.split().items()} == {"train": [0, 1], "valid": [2], "test": [3, 4]}


class Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("a file ran code",))


def test_runs_no_code_from_a_file(tmp_path: Path) -> None:
    root = write(tmp_path)
    path = root / "peptides-func" / "raw" / "val.pt"
    torch.save([Trap()], path)
    with pytest.raises(ValueError, match=r"val.pt is cut short, or holds more than tensors"):
        load("peptides-func", root)
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ValueError, match=r"val.pt is cut short, or holds more than tensors"):
        load("peptides-func", root)


def test_refuses_a_file_cut_short(tmp_path: Path) -> None:
    path = write(tmp_path) / "peptides-func" / "raw" / "test.pt"
    whole = path.read_bytes()
    for kept in (0, 10, len(whole) // 2):
        path.write_bytes(whole[:kept])
        with pytest.raises(ValueError, match=r"test.pt is cut short"):
            load("peptides-func", tmp_path)


@pytest.mark.parametrize(
    ("val", "message"),
    [
        ([graph(2, 0)[:3]], "expected a list of"),
        ({"x": torch.zeros(1)}, "expected a list of"),
        ([], "the split 'valid' is empty"),
    ],
)
def test_refuses(tmp_path: Path, val: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load("peptides-func", write(tmp_path, val=val))
