from pathlib import Path

import pytest

from enfa.datasets.own.table import read_table


def write(tmp_path: Path, text: str, name: str = "a.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


def test_columns_rows_and_lines(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, '\ufeff smiles ,note\nC,"two\nlines"\n\nCC, x \n'))
    assert table.columns == ["smiles", "note"] and table.rows == [["C", "two\nlines"], ["CC", " x "]]
    assert table.lines == [2, 5], "a row begins where its first line is, and empty lines are no rows"
    assert table.column("note") == ["two\nlines", "x"] and not table.bad


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiters(tmp_path: Path, delimiter: str) -> None:
    table = read_table(write(tmp_path, "a\tb\n1\t2\n".replace("\t", delimiter)))
    assert (table.columns, table.rows, table.delimiter) == (["a", "b"], [["1", "2"]], delimiter)


def test_rows_of_another_length_are_bad(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "a,b\n1\n1,2\n1,2,3\n"))
    assert [str(row) for row in table.bad] == [
        "line 2: '1': Expected 2 columns, got 1",
        "line 4: '1,2,3': Expected 2 columns, got 3",
    ]
    assert table.rows == [["1", ""], ["1", "2"], ["1", "2"]]


def test_words(tmp_path: Path) -> None:
    named = read_table(write(tmp_path, "O water\n\nC\tmethane gas\nN\n", "a.smi"))
    assert named.rows == [["O", "water"], ["C", "methane gas"], ["N", ""]] and named.lines == [1, 3, 4]
    assert read_table(write(tmp_path, "O\nC\n", "b.smi")).columns == ["smiles"]


def test_refuses(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="There is no input file"):
        read_table(tmp_path / "no.csv")
    for text, message in (("", "at least one row"), ("a,b\n", "at least one row"), ("a,a\n1,2\n", "got 'a' twice")):
        with pytest.raises(ValueError, match=message):
            read_table(write(tmp_path, text))
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="a text file in UTF-8"):
        read_table(tmp_path / "binary.csv")
    with pytest.raises(ValueError, match=r"Expected a column 'smile', got smiles, y \(did you mean 'smiles'\?\)"):
        read_table(write(tmp_path, "smiles,y\nC,1\n")).column("smile")
