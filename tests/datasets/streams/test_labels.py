from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import enfa
from enfa.cli.app import app
from enfa.datasets import SmilesStream
from enfa.datasets.own.labels import read_labels

WORDS = ["yes", "", "No", "TRUE", "false", "1", "0.0", "NA"]


def _file(folder: Path, values: list[str]) -> Path:
    (folder / "a.csv").write_text("smiles,toxic\n" + "".join(f"CCO,{value}\n" for value in values))
    return folder / "a.csv"


def test_yes_and_no_are_what_training_takes_them_for(tmp_path: Path) -> None:
    found = [values[0] for _, _, values in SmilesStream(_file(tmp_path, WORDS), ["toxic"]).lines()]  # type: ignore[index]
    expected = read_labels({"toxic": WORDS}).y[:, 0].tolist()
    assert [-1 if math.isnan(v) else v for v in found] == [-1 if math.isnan(v) else v for v in expected]


@pytest.mark.parametrize("skip_bad", [False, True])
def test_other_words_are_refused_and_never_left_out(tmp_path: Path, skip_bad: bool) -> None:
    stream = SmilesStream(_file(tmp_path, ["", "high", "low"]), ["toxic"], skip_bad=skip_bad)
    said = r"a\.csv, line 3: expected numbers, yes/no or blanks in the column 'toxic', got 'high', .* no line out for a class"
    with pytest.raises(ValueError, match=said):
        list(stream.lines())


MIXED = [
    ["0.5", "1.5", ">10", "", "2.5"], ["1", "0", "maybe", "no"], ["yes", "1", "2.5"], ["2.5", "0", "no"],
    ["yes", "no", "unsure"], ["3", "1", "2", "many"], ["2.5", "high", "low"],
]  # fmt: skip


@pytest.mark.parametrize("values", MIXED, ids=",".join)
def test_the_same_lines_are_left_out_as_for_training(tmp_path: Path, values: list[str]) -> None:
    """Or, of classes, the column is refused: their numbers are those of all lines together."""
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    file, counts = _file(tmp_path, values), values[0] == "3"
    trained = read_labels({"toxic": values}, "regression" if counts else "auto")
    stream = SmilesStream(file, ["toxic"], skip_bad=True)
    if trained.task == "multiclass":
        with pytest.raises(ValueError, match=r"expected numbers, yes/no or blanks .* which are classes to enfa train"):
            list(stream)
        return
    assert len(trained.wrong) == 1
    kept = [row for row in range(len(values)) if row != trained.wrong[0][0]]
    found = list(stream)
    assert [graph.line for graph in found] == [row + 2 for row in kept]
    assert [repr(graph.y.item()) for graph in found] == [repr(float(trained.y[row, 0])) for row in kept]
    with pytest.raises(
        ValueError, match=re.escape(f"a.csv, line {trained.wrong[0][0] + 2}: {trained.wrong[0][1]}; --skip-bad")
    ):
        list(SmilesStream(file, ["toxic"]))


def test_decimal_commas_are_refused_as_for_training(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("smiles;toxic\nCCO;0,5\nCCO;1,25\nCCO;2\n")
    with pytest.raises(ValueError, match=r"a\.csv: Expected numbers with a decimal point in the column 'toxic', got '0,5'$"):
        list(SmilesStream(tmp_path / "a.csv", ["toxic"], skip_bad=True).lines())


@pytest.mark.parametrize("text", ["inf", "-Infinity", "-nan", "1e400", "1e39"])
def test_what_is_no_finite_number_makes_a_bad_line(tmp_path: Path, text: str) -> None:
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    file = _file(tmp_path, ["1.5", "nan", text, "3e38"])
    said = rf"a\.csv, line 4: expected a finite number, .* or a blank in 'toxic', got '{text}'; --skip-bad"
    with pytest.raises(ValueError, match=said):
        list(SmilesStream(file, ["toxic"]))
    kept = list(SmilesStream(file, ["toxic"], skip_bad=True))
    assert [graph.line for graph in kept] == [2, 3, 5]
    assert kept[0].y.item() == 1.5 and kept[1].y.isnan().all() and kept[2].y.isfinite().all()


def test_the_command_keeps_labelled_lines(tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    command = ["compile", "--target", "toxic", "--skip-bad", "--layers", "1", "--workers", "1", "--no-progress", "--out"]
    result = CliRunner().invoke(app, [*command, str(tmp_path / "yes"), str(_file(tmp_path, ["yes", "", "no"]))])
    assert result.exit_code == 0, result.output
    y = enfa.ShardedDataset.open(tmp_path / "yes")[[0, 1, 2]].y
    assert y[[0, 2]].tolist() == [[1.0], [0.0]] and y[1].isnan().all()
    result = CliRunner().invoke(app, [*command, str(tmp_path / "high"), str(_file(tmp_path, ["high", "", "low"]))])
    assert result.exit_code == 2 and "got 'high'" in result.output
