from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from enfa.batch.shards.folder import Folder


@pytest.fixture(params=["local", "file", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    urls = {"local": f"{tmp_path}/new/one", "file": f"file://{tmp_path}/new", "memory": f"memory://{uuid.uuid4().hex}/one"}
    return Folder(urls[request.param])


def test_files_by_name(folder: Folder) -> None:
    assert folder.names() == []
    with pytest.raises(FileNotFoundError):
        folder.read("a")
    folder.write("b", [b"one", b"two"])
    folder.write("a", [b"x"])
    folder.write("a", [b"y"])
    assert folder.names() == ["a", "b"] and folder.read("b") == b"onetwo" and folder.read("a") == b"y"
    folder.remove("a")
    folder.remove("a")
    assert folder.names() == ["b"]
    assert folder.path("b").endswith("/b") and folder.shared == (not folder.url.startswith("memory"))


def test_a_folder_is_where_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Folder("here")
    monkeypatch.chdir("/")
    folder.write("a", [b"x"])
    assert (tmp_path / "here" / "a").read_bytes() == b"x" and folder.url == "here"


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(ValueError, match=r"Expected a folder of shards, got the file .*mine"):
        Folder(tmp_path / "mine")


def test_what_fsspec_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="a URL that fsspec knows, got nothing://x"):
        Folder("nothing://x").names()
