import re
from pathlib import Path

import pytest

from enfa.datasets import names
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


def test_a_missing_file_is_looked_for_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=rf"no dataset file no.npz in {re.escape(str(tmp_path))} \(dataset=PATH"):
        dataset_file("no.npz")
    with pytest.raises(FileNotFoundError, match=r"no.npz$"):
        dataset_file(tmp_path / "no.npz")
    (tmp_path / "there.npz").touch()
    assert dataset_file("there.npz") == Path("there.npz")
