import re
from pathlib import Path

import numpy as np
import pytest

from enfa.datasets import from_npz, load, names, stream
from enfa.datasets.known import NPZ_NAMES, OGB_NAMES, check_known, compact_file, dataset_file
from enfa.datasets.npz.zinc import SIZES
from enfa.datasets.official import fetch
from enfa.datasets.official.compact import _READERS
from enfa.datasets.official.ogb_csv import OGB_TASKS


def test_the_names_are_those_that_are_read() -> None:
    assert tuple(OGB_TASKS) == OGB_NAMES and tuple(_READERS) == NPZ_NAMES
    assert {compact_file(name, "d") for name in SIZES} == {Path("d/ZINC.npz")}
    assert len(set(names())) == len(names())


def test_what_may_be_read_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "TU", tmp_path.as_uri())
    (tmp_path / "OWN.npz").touch()
    raw = tmp_path / "RAW" / "raw"
    raw.mkdir(parents=True)
    for part in ("A", "graph_indicator", "graph_labels"):
        (raw / f"RAW_{part}.txt").touch()
    for name in (*names(), "OWN", "RAW", str(tmp_path / "OWN.npz")):
        check_known(name, tmp_path)
    for wrong in ("", "a/b", "NONE"):
        with pytest.raises(ValueError, match="Unknown dataset"):
            check_known(wrong, tmp_path)
    with pytest.raises(FileNotFoundError, match="There is no dataset file"):
        check_known(str(tmp_path / "none.npz"), tmp_path)
    with pytest.raises(ValueError, match="pairs of graphs"):
        check_known("BREC", tmp_path)


@pytest.mark.parametrize("name", ["peptides-func", "ogbg-molhiv", "ogbg-moltox21", "IMDB-BINARY", "counting-graphs"])
def test_the_name_of_a_benchmarks_file_is_none_of_a_benchmark(name: str, tmp_path: Path) -> None:
    """It would be read as a file of one's own: without the metric, and without the categories of the features."""
    written = name.replace("-", "_")
    file = tmp_path / f"{written}.npz"
    np.savez(file, num_nodes=[2, 1], num_edges=[1, 0], edges=[[0, 1]], node_label=[0, 1, 1], y=np.array([[0.0], [1.0]]))
    for read in (load, stream, check_known):
        with pytest.raises(ValueError, match=f"^Unknown dataset '{written}'; did you mean '{name}'\\?"):
            read(written, tmp_path)  # type: ignore[operator]
    check_known(name, tmp_path)
    check_known(str(file), tmp_path)
    assert len(from_npz(file)) == 2, "a path is a file of one's own"


def test_a_missing_file_is_looked_for_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=rf"no dataset file no.npz in {re.escape(str(tmp_path))} \(dataset=PATH"):
        dataset_file("no.npz")
    with pytest.raises(FileNotFoundError, match=r"no.npz$"):
        dataset_file(tmp_path / "no.npz")
    (tmp_path / "there.npz").touch()
    assert dataset_file("there.npz") == Path("there.npz")
