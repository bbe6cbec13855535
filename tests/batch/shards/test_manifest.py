from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from enfa.batch.file.corrupt import CorruptFileError
from enfa.batch.file.key import key_of
from enfa.batch.shards.folder import Folder
from enfa.batch.shards.manifest import MANIFEST, UNFINISHED, Manifest, Shard, shard_name
from enfa.edits import NodeMarking
from enfa.report.program import ds_program


def a_shard(number: int, graphs: int = 3) -> Shard:
    return Shard(shard_name(number), graphs, 1000, "0" * 64, "1" * 32, 12, 12, 50, [2, 9, 12])


def a_manifest(*numbers: int) -> Manifest:
    key = key_of(NodeMarking(), ds_program(2), "distinct", None, "")
    key = {name: value for name, value in key.items() if name not in ("fingerprint", "digest")}
    columns: dict[str, Any] = {"x": ["int64", [2]]}
    return Manifest(key, [], columns, ["float32", [1]], {"heat": ["float64", []]}, 3, [a_shard(i) for i in numbers])


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder, manifest = Folder(tmp_path), a_manifest(0, 1)
    manifest.write(folder)
    found = Manifest.read(folder)
    assert found == manifest and found.graphs == 6 and found.program.steps == ds_program(2).steps
    assert found.text() == folder.read(MANIFEST)


def test_shards_that_lack_are_noticed(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"There is no manifest\.json in"):
        Manifest.read(folder)
    a_manifest(0, 2).write(folder, UNFINISHED)
    assert len(Manifest.read(folder, UNFINISHED).shards) == 2
    with pytest.raises(FileNotFoundError, match="has not come to its end"):
        Manifest.read(folder)
    a_manifest(0, 2).write(folder)
    with pytest.raises(CorruptFileError, match="all shards, from the first to the last"):
        Manifest.read(folder)


CHANGES = [
    ("format", 2, "manifest of format 1"), ("graphs", 7, "'graphs' to be 6"), ("fingerprint", "0", "'fingerprint' to be"),
    ("size", 0, "'size'"), ("columns", {}, "'columns' to have x"), ("labels", ["float32"], "'labels'"),
    ("attributes", {"heat": 3}, "'attributes'"), ("needs", 3, "header.needs"), ("key", {}, "'key' of"),
    ("more", 1, "the fields"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "said"), CHANGES, ids=[name for name, _, _ in CHANGES])
def test_a_field_that_does_not_fit_is_refused(tmp_path: Path, name: str, value: Any, said: str) -> None:
    folder = Folder(tmp_path)
    folder.write(MANIFEST, [json.dumps({**json.loads(a_manifest(0, 1).text()), name: value}).encode()])
    with pytest.raises(ValueError, match=said) as error:
        Manifest.read(folder)
    assert "manifest.json" in str(error.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [("file", "../shard-00001.enfa"), ("graphs", 0), ("bytes", -1), ("sha256", "x"), ("rows", None), ("fingerprint", 3)],
)
def test_a_shard_that_does_not_fit_is_refused(tmp_path: Path, name: str, value: Any) -> None:
    given = json.loads(a_manifest(0, 1).text())
    given["shards"][1][name] = value
    with pytest.raises(CorruptFileError, match=r"shards\[1\]"):
        Manifest.from_text(json.dumps(given).encode())
