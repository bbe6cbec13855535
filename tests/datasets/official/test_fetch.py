import zipfile
from pathlib import Path

import pytest

from enfa.datasets.official.fetch import ensure_files


def archive(path: Path, members: dict[str, str]) -> str:
    with zipfile.ZipFile(path, "w") as file:
        for name, text in members.items():
            file.writestr(name, text)
    return path.as_uri()


def test_takes_only_what_was_asked_for(tmp_path: Path) -> None:
    members = {"top/raw/a.txt": "A", "top/T_b.txt": "B", "top/T_/../../c.txt": "C", "top/code.py": "D"}
    url = archive(tmp_path / "x.zip", members)
    folder = tmp_path / "root" / "x"
    ensure_files("X", folder, ["raw/a.txt"], url, also=["T_*.txt"])
    assert sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*")) == [
        "T_b.txt",
        "raw",
        "raw/a.txt",
    ]
    assert (folder / "raw" / "a.txt").read_text() == "A"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["root", "x.zip"], "nothing outside the folder"


def test_takes_a_plain_file(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("3 1")
    ensure_files("X", tmp_path / "x", ["GRAPHSAT.txt"], (tmp_path / "plain.txt").as_uri())
    assert (tmp_path / "x" / "GRAPHSAT.txt").read_text() == "3 1"


def test_leaves_files_that_are_there_alone(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("mine")
    ensure_files("X", tmp_path, ["a.txt"], "https://example.org/x.zip")
    assert (tmp_path / "a.txt").read_text() == "mine"


def test_without_network_says_which_files_belong_where(tmp_path: Path) -> None:
    folder = tmp_path / "X" / "raw"
    with pytest.raises(FileNotFoundError) as caught:
        ensure_files("X", folder, ["a.txt", "b.txt"], "https://example.org/x.zip")
    message = str(caught.value)
    for part in ("X needs a.txt, b.txt in", str(folder), "https://example.org/x.zip", "no network in tests"):
        assert part in message
    assert "\n" not in message
    assert not folder.exists(), "no empty folders left behind"


def test_an_archive_without_the_files(tmp_path: Path) -> None:
    url = archive(tmp_path / "x.zip", {"top/other.txt": ""})
    with pytest.raises(FileNotFoundError, match="does not hold them"):
        ensure_files("X", tmp_path / "x", ["a.txt"], url)


def test_a_damaged_archive_leaves_nothing_behind(tmp_path: Path) -> None:
    archive(tmp_path / "x.zip", {"top/a.txt": "A" * 9999, "top/b.txt": "B"})
    whole = (tmp_path / "x.zip").read_bytes()
    (tmp_path / "x.zip").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileNotFoundError, match="could not be read"):
        ensure_files("X", tmp_path / "x", ["a.txt", "b.txt"], (tmp_path / "x.zip").as_uri())
    assert list((tmp_path / "x").iterdir()) == []
