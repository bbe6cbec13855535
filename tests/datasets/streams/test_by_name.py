from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from enfa.datasets import NpzStream, SmilesStream, stream
from enfa.datasets.official.compact import from_compact


@pytest.mark.parametrize("name", ["ZINC", "ogbg-moltox21"])
def test_it_is_the_benchmark_in_its_order(name: str, data: Path) -> None:
    expected = from_compact(name, data).graphs
    found = list(islice(stream(name, data), 1500))
    for one, other in zip(found, expected):
        assert one.to_dict().keys() == other.to_dict().keys()
        for key, value in one.to_dict().items():
            assert value.dtype == other[key].dtype and value.shape == other[key].shape
            assert ((value == other[key]) | (value != value)).all()


def test_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        stream(tmp_path / "some.npz")
    with pytest.raises(FileNotFoundError):
        stream(tmp_path / "some.csv")
    with pytest.raises(ValueError, match="Unknown dataset"):
        stream("ZINK", tmp_path)
    with pytest.raises(ValueError, match=r"Expected a \.csv or \.tsv file"):
        stream("ZINC", tmp_path, labels=["logp"])
    (tmp_path / "some.csv").write_text("smiles,logp\nCC,1\n")
    assert isinstance(stream(tmp_path / "some.csv", labels=["logp"]), SmilesStream)


def test_a_file_of_ones_own(data: Path) -> None:
    assert isinstance(stream(data / "ZINC.npz"), NpzStream)
