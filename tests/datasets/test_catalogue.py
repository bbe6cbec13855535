import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from enfa.cli.choices import dataset_of
from enfa.datasets import from_npz, load, load_brec, names
from enfa.datasets.official import fetch


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("PROTIENS", "PROTEINS"),
        ("proteins", "PROTEINS"),
        ("ogbg_molhiv", "ogbg-molhiv"),
        ("Peptides-func", "peptides-func"),
    ],
)
def test_suggests_the_right_name(tmp_path: Path, wrong: str, right: str) -> None:
    with pytest.raises(ValueError, match=f"^Unknown dataset '{wrong}'; did you mean '{right}'\\? Known are EXP, "):
        load(wrong, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wrong", ["", "../PROTEINS", "a/b", "qqqqqq"])
def test_names_that_are_like_nothing(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(ValueError, match=r"^Unknown dataset .*Known are EXP, CEXP, CSL, peptides-func, ogbg-molhiv"):
        load(wrong, tmp_path)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("PROTEINS", "PROTEINS/raw"),
        ("EXP", "EXP/raw"),
        ("CEXP", "CEXP/raw"),
        ("ogbg-molhiv", "ogbg_molhiv"),
        ("ogbg-moltox21", "ogbg_moltox21"),
        ("peptides-func", "peptides-func/raw"),
        ("MUTAG", "MUTAG/raw"),
    ],
)
def test_missing_files_are_asked_for(tmp_path: Path, name: str, file: str) -> None:
    with pytest.raises(FileNotFoundError, match=f"^{name} needs .* in {tmp_path / file}: not there"):
        load(name, tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError) as caught:
        load(name, tmp_path / "nowhere")
    npz = tmp_path / "nowhere" / f"{name.replace('-', '_')}.npz"
    for part in (f"There is no folder {npz.parent}. ", f"The one file {npz} would do", "root=FOLDER", "--root FOLDER"):
        assert part in str(caught.value)


@pytest.mark.parametrize("name", ["ZINC", "ZINC-full", "counting", "SR25", "BREC"])
def test_files_that_must_be_made_are_described(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"docs/datasets.md says what it holds.*root=FOLDER .*--root FOLDER"):
        load_brec(tmp_path) if name == "BREC" else load(name, tmp_path)


def _arrays() -> dict[str, Any]:
    """Two graphs: an edge, and a node."""
    return {"num_nodes": [2, 1], "num_edges": [1, 0], "edges": [[0, 1]], "node_label": [0, 1, 4], "y": [0, 1]}


@pytest.mark.parametrize(("name", "stem"), [("MUTAG", "MUTAG"), ("EXP", "EXP"), ("NOT-KNOWN", "NOT_KNOWN")])
def test_one_file_of_arrays_will_do(tmp_path: Path, name: str, stem: str) -> None:
    np.savez(tmp_path / f"{stem}.npz", **{**_arrays(), "node_label": [0, 1, 1]})
    found = load(name, tmp_path)
    assert (found.name, len(found), found.labels.tolist()) == (name, 2, [0, 1])
    with pytest.raises(ValueError, match="attr"):
        load(name, tmp_path, use_node_attr=True)


def test_molecules_of_one_file_have_their_metric(data: Path) -> None:
    found = load("ogbg-moltox21", data)
    assert (found.metric, found.num_outputs) == ("rocauc", 12) and set(found.splits or {}) == {"train", "valid", "test"}


def test_the_file_of_arrays_comes_first(tmp_path: Path) -> None:
    raw = tmp_path / "NEW" / "raw"
    raw.mkdir(parents=True)
    for part, text in (("A", "1, 2\n2, 1\n"), ("graph_indicator", "1\n1\n2\n3\n"), ("graph_labels", "0\n1\n1\n")):
        (raw / f"NEW_{part}.txt").write_text(text)
    np.savez(tmp_path / "NEW.npz", **_arrays())
    assert len(load("NEW", tmp_path)) == len(dataset_of("NEW", tmp_path)) == 2


def test_a_damaged_file_of_arrays_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "PROTEINS.npz", **{**_arrays(), "num_edges": [2, 0]})
    with pytest.raises(ValueError, match="PROTEINS"):
        load("PROTEINS", tmp_path)


def test_downloads_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "NEW.zip", "w") as archive:
        archive.writestr("NEW/NEW_A.txt", "1, 2\n2, 1\n")
        archive.writestr("NEW/NEW_graph_indicator.txt", "1\n1\n2\n")
        archive.writestr("NEW/NEW_graph_labels.txt", "0\n1\n")
        archive.writestr("NEW/NEW_node_labels.txt", "0\n1\n4\n")
        archive.writestr("NEW/README.txt", "")
    monkeypatch.setattr(fetch, "TU", tmp_path.as_uri())
    new = load("NEW", tmp_path / "data")
    assert (len(new), new.in_channels) == (2, [5])
    assert len(list((tmp_path / "data" / "NEW" / "raw").iterdir())) == 4
    assert np.array_equal(load("NEW", tmp_path / "data").labels, new.labels)


def test_only_tu_datasets_have_node_attributes(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="CSL has no node attributes"):
        load("CSL", use_node_attr=True)


def test_names_are_distinct_and_hold_the_papers_six() -> None:
    assert len(set(names())) == len(names())
    assert {"PROTEINS", "EXP", "CEXP", "ogbg-molhiv", "ogbg-moltox21", "peptides-func"} < set(names())


def test_nothing_is_unpickled_and_nothing_is_written(
    laid_out: Callable[[str], Path], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any, **options: Any) -> None:
        raise AssertionError("something was unpickled")

    root = laid_out("PROTEINS")
    laid_out("EXP"), laid_out("ogbg-moltox21")
    for module, name in ((pickle, "load"), (pickle, "loads"), (pickle, "Unpickler"), (torch, "load")):
        monkeypatch.setattr(module, name, refuse)
    before = sorted(root.rglob("*"))
    for name in ("PROTEINS", "EXP", "ogbg-moltox21", "CSL"):
        load(name, root)
    from_npz(data / "EXP.npz")
    assert sorted(root.rglob("*")) == before
